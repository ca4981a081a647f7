"""`harness gate`: keep a proposed change or drop it, with an account of all proposals before it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.atomic import append_line
from harness.files.links import refuse_link
from harness.files.locks import work_lock
from harness.files.printable import one_line
from harness.files.reading import is_there, parse_json, read_lines
from harness.machine import environment
from harness.results.answer import Answer
from reports.decide.question import comparison_of, question_of, two_rows_of
from reports.document.table import number_text
from reports.results import ResultRow
from reports.scores.score_table import is_score_table, question_of_scores, refuse_with_scores
from reports.stats.estimate import Estimate, p_of_at_most
from reports.stats.online import (
    BETTER,
    FIRST_SEEDS,
    NOT_BETTER,
    RATE,
    UNDECIDED,
    Proposal,
    look,
    next_level,
)
from reports.stats.simultaneous import FEWEST_SEEDS
from reports.stats.verdicts import Question, describe_lost_seeds
from reports.with_report import WithReport

if TYPE_CHECKING:
    from reports.read.score_tables import Source

HISTORY = "gate.jsonl"
_SECONDS = 30  # for which another gate with the same history is waited for; each takes a second
NOT_WORSE, MAY_BE_WORSE = "not worse", "may be worse"
_MARGIN = "not_worse_by"  # key of what may be lost, in points, in what a proposal is about


@dataclass
class GateEntry:
    """A proposal in the history, as its last look left it.

    Attributes:
        about: labels of "baseline" and "candidate", what they were compared "on", and what may be
            lost, "not_worse_by", where something may.
        runs: hashes of the candidate's runs at the last look; None in a history of an earlier
            version, which did not store them.
        baseline_runs: of the baseline's.
    """

    about: dict[str, str]
    proposal: Proposal
    runs: list[str] | None
    baseline_runs: list[str] | None

    def is_about(self, about: dict[str, str], runs: list[str], baseline_runs: list[str]) -> bool:
        """True if the runs that are there now are those of this proposal, or more of them.

        A label says little: scripts call every change "mine".
        """
        if self.about != about or self.runs is None or self.baseline_runs is None:
            return False
        are_there = set(self.runs) <= set(runs)
        return are_there and set(self.baseline_runs) <= set(baseline_runs)


def gate(
    found: WithReport | Source,
    *,
    baseline: str,
    candidate: str,
    on: str = "",
    comparison: str = "",
    most: int = 20,
    history: str | Path = "",
    not_worse_by: float = 0.0,
    all_tasks: bool = False,
) -> Answer:
    """Is a candidate better than the baseline, with at most 5 % wrong, in expectation, among all
    candidates ever accepted?

        >>> answer = harness.gate(work, baseline="cls", candidate="mean", history=work / "gate.jsonl")
        >>> answer.data["decision"]
        'better'

    Each new candidate is a proposal, written to the history with a hash of each of its runs. The
    same runs with further seeds are another interim analysis of the same proposal; without further
    ones its answer is repeated. Other runs under the same label are a new proposal
    (`reports.stats.online`).

    Args:
        found: a comparison or its work directory, or scores that others made, as `harness.verdict`
            takes them.
        baseline, candidate: labels of two rows.
        on, comparison: as `harness.verdict` has them.
        most: number of seeds of the candidate after which nothing remains undecided; fixed at the
            first decision.
        history: the file of all proposals; left out, `gate.jsonl` in the work directory or next to
            the scores.
        not_worse_by: points that may be lost: the candidate is accepted if it is not worse than the
            baseline by as much.
        all_tasks: a task that only one of the rows has is an error.

    Returns:
        In `data`: "decision" ("better", "not better" or "undecided"; with `not_worse_by` "not
            worse", "may be worse" or "undecided"), "gain" with "low" and "high"
            in points, "p" (one-sided, over all analyses), "level", "proposal" (its number),
            "proposals" (in the history, this one included), "accepted" (of them), "seeds", "most".

    Raises:
        InputError: no such row, a damaged history, `most` below 5 or other than at the first
            decision, a negative `not_worse_by`.
    """
    if not 0 <= not_worse_by < math.inf:
        raise InputError(
            f"--not-worse-by {not_worse_by:g}: expected points, 0 or more", key="--not-worse-by"
        )
    if most < FIRST_SEEDS:
        raise InputError(
            f"--most {most}: expected a number of seeds, {FIRST_SEEDS} or more", key="--most"
        )
    if baseline == candidate:
        raise InputError(
            f'"{one_line(baseline)}" is baseline and candidate: name two rows',
            key=one_line(baseline),
        )
    if is_score_table(found):
        refuse_with_scores(comparison=comparison)
        question = question_of_scores(found, on, (baseline, candidate), complete=all_tasks)
    else:
        question = question_of(comparison_of(found, comparison), on)

    file = _history_file(found, history)
    a, b = two_rows_of(question.results.rows, candidate, baseline)
    if all_tasks:
        _check_tasks(question, a, b)
    with work_lock(file.parent, f".{file.name}", f"the history {file}", _SECONDS):
        return _decide(question, a, b, most, file, not_worse_by)


def _check_tasks(question: Question, a: ResultRow, b: ResultRow) -> None:
    """Check that both rows have every task that they are compared by.

    Raises:
        InputError: one lacks a task.
    """
    for row in (a, b):
        if question.significance.by_seed(row, question.target) is None:
            raise InputError(
                f"{one_line(row.label)} lacks a task of {question.target.title}",
                file=question.results.name,
                key=one_line(row.label),
                remedy="score it on all tasks, or name a task with --on",
            )


def _history_file(found: WithReport | Source, history: str | Path) -> Path:
    """The file of all proposals: the one that is named, else next to what is judged."""
    if history:
        if "\0" in str(history):
            raise InputError(
                "--history: a file name cannot hold the character NUL", key="--history"
            )
        return Path(history)
    first: Any = found
    if isinstance(found, list | tuple):
        first = found[0]
    place = first
    if not isinstance(first, str | Path):
        place = getattr(first, "workdir", "")
    if not place:
        raise InputError(
            "gate: scores of a frame need a file for the history of proposals (history=FILE)",
            key="history",
        )
    folder = Path(place)
    if not folder.is_dir():
        folder = folder.parent
    refuse_link(folder / HISTORY, folder)
    return folder / HISTORY


def _decide(
    question: Question,
    a: ResultRow,
    b: ResultRow,
    most: int,
    file: Path,
    margin: float,
) -> Answer:
    """Judge candidate `a` against baseline `b`, and write a new look to the history.

    Args:
        margin: points that may be lost.
    """
    significance = question.significance.of_two(a, b)
    target = question.target
    runs = significance.digests(a, target)
    about = {"baseline": b.label, "candidate": a.label, "on": target.title}
    if margin:
        about[_MARGIN] = f"{margin:g}"
    known = _read_history(file)
    baseline_runs = significance.digests(b, target)
    of_new = most if a.is_random else len(runs)
    number, entry = _find_proposal(known, about, runs, baseline_runs, of_new)
    proposal = entry.proposal
    is_open = proposal.decision == UNDECIDED
    if proposal.looks and is_open and a.is_random:
        _check_most(most, proposal, number)

    (difference,) = significance.differences([(a, b)], target, "one proposal")
    estimate = None
    if difference is not None and difference.judged:
        estimate = difference.estimate
    enough = len(runs) >= FIRST_SEEDS or not a.is_random
    grown = True
    if proposal.looks:
        before, *_ = proposal.looks[-1]
        grown = len(runs) > before
    if estimate is not None and enough and grown and is_open:
        own, other, examples = significance.parts(a, b, target)
        p = _one_sided_p(estimate, margin, own + other + examples)
        above = estimate.value + margin / 100
        look(proposal, len(runs), p, above, (own, other + examples))
        _write(file, number, entry)
        known[number:] = [entry, *known[number + 1 :]]

    decision = proposal.decision
    if estimate is not None and decision == BETTER and estimate.value <= -margin / 100:
        decision = NOT_BETTER  # by runs that came after the decision
    data = {
        **about,
        _MARGIN: margin,
        "decision": _say_decision(decision, margin),
        **_place_in_history(known, number),
        "seeds": len(runs),
        "most": proposal.most,
        **_points_of(estimate),
        "p": proposal.p,
        "level": proposal.level,
    }
    notes = (describe_lost_seeds((a, b)), question.results.note)
    sentences = [_describe(data, proposal, grows=a.is_random)]
    sentences += [f"note: {note}" for note in notes if note]
    return Answer(one_line("; ".join(sentences)), data, [data])


def _place_in_history(known: Sequence[GateEntry], number: int) -> dict[str, int]:
    """Return which proposal of a history one is, how many there are, and how many were accepted."""
    accepted = [one for one in known if one.proposal.decision == BETTER]
    return {
        "proposal": number + 1,
        "proposals": max(len(known), number + 1),
        "accepted": len(accepted),
    }


def _check_most(most: int, proposal: Proposal, number: int) -> None:
    """Raises:
    InputError: the number of seeds is not that of the first decision.
    """
    if proposal.most != most:
        raise InputError(
            f"--most {most}: proposal {number + 1} was first judged with at most "
            f"{proposal.most} seeds, which its level is divided by",
            key="--most",
            remedy=f"ask again with --most {proposal.most}",
        )


def _one_sided_p(estimate: Estimate, margin: float, variance: float) -> float:
    """Return p of "the candidate is no better", or of "it loses more than a margin in points"."""
    if margin:
        return p_of_at_most(estimate, -margin / 100, variance)
    if estimate.value > 0:
        return estimate.p / 2
    return 1 - estimate.p / 2


def _find_proposal(
    known: Sequence[GateEntry],
    about: dict[str, str],
    runs: list[str],
    baseline_runs: list[str],
    most: int,
) -> tuple[int, GateEntry]:
    """Return the place in the history, from 0, of the proposal that runs belong to, and its entry
    with these runs.

    Args:
        about, runs, baseline_runs: as `GateEntry` has them.
        most: runs of the candidate at its last look, where the proposal is a new one.
    """
    same = [n for n, one in enumerate(known) if one.is_about(about, runs, baseline_runs)]
    if same:
        number = same[-1]
        proposal = known[number].proposal
    else:
        number = len(known)
        proposal = Proposal(next_level([one.proposal for one in known]), most)
    return number, GateEntry(about, proposal, runs, baseline_runs)


def _say_decision(decision: str, margin: float) -> str:
    """Return the decision in the words of the question: is it better, or is it not worse?"""
    if not margin:
        return decision
    return {BETTER: NOT_WORSE, NOT_BETTER: MAY_BE_WORSE}.get(decision, decision)


def _points_of(estimate: Estimate | None) -> dict[str, float | None]:
    """Return the gain with its interval, in points; None where nothing could be judged."""
    if estimate is None:
        return {"gain": None, "low": None, "high": None}
    return {
        "gain": 100 * estimate.value,
        "low": 100 * estimate.low,
        "high": 100 * estimate.high,
    }


def _describe(data: dict[str, Any], proposal: Proposal, *, grows: bool) -> str:
    """The answer as one line."""
    candidate = data["candidate"]
    baseline = data["baseline"]
    pair = f"{candidate} against {baseline}"
    seeds = data["seeds"]
    counted = "1 seed" if seeds == 1 else f"{seeds} seeds"
    if not proposal.looks:
        needed = f"{FIRST_SEEDS} of {candidate} and {FEWEST_SEEDS} of {baseline}"
        return one_line(f"{UNDECIDED}: {pair} has {counted}; the first decision needs {needed}")
    if data["gain"] is None:
        numbers = counted
    else:
        gain = number_text(data["gain"], 2, signed=True)
        low = number_text(data["low"], 2, signed=True)
        high = number_text(data["high"], 2, signed=True)
        numbers = f"{gain} points [{low}, {high}] with {counted}"

    decision = data["decision"]
    if decision in (BETTER, NOT_WORSE):
        then = "keep it"
    elif decision == UNDECIDED:
        then = f"add seeds to {candidate}, up to {data['most']}"
    elif proposal.decision == BETTER:
        then = "drop it: it was found better before, and runs that came later say otherwise"
    elif seeds >= data["most"] or not grows:
        then = "drop it"
    else:
        then = "drop it: more seeds would hardly change that"
    if data[_MARGIN]:
        decision = f"{decision} (by {data[_MARGIN]:g} points)"
    history = f"{data['proposals']} so far, {data['accepted']} accepted"
    return one_line(
        f"{decision}: {pair} on {data['on']}: {numbers}; "
        f"p = {data['p']:.2g} at the level {data['level']:.2g} of "
        f"proposal {data['proposal']} ({history}; "
        f"of all that are ever accepted, at most {RATE:.0%} are wrong in expectation); {then}"
    )


def _write(file: Path, number: int, entry: GateEntry) -> None:
    """Add a look at proposal `number`, from 0, as a line of the history."""
    line = {
        "time": environment.now(),
        "proposal": number + 1,
        **entry.about,
        **asdict(entry.proposal),
        "runs": entry.runs,
        "baseline_runs": entry.baseline_runs,
    }
    append_line(file, json.dumps(line))


def _read_history(file: Path) -> list[GateEntry]:
    """Every proposal as its last look left it, in the order of the first looks.

    Raises:
        InputError: not an ordinary file, not UTF-8, or a line that is no proposal.
    """
    if not is_there(file):
        return []
    found: list[GateEntry] = []
    for number, line in enumerate(read_lines(file), 1):
        if not line:
            continue
        try:
            place, entry = _parse(line, found)
        except (
            ArithmeticError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            raise InputError(
                f"not a proposal ({one_line(_describe_fault(error))})",
                file=file,
                line=number,
                remedy="restore the file, or begin another with --history",
            ) from None
        found[place:] = [entry, *found[place + 1 :]]
    return found


def _describe_fault(error: Exception) -> str:
    """Return why a line is no proposal."""
    if isinstance(error, KeyError):
        return f'no key "{error.args[0]}"'
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, TypeError | AttributeError):
        return "no JSON object, or one with other values than a proposal has"
    return f"{error!s:.100}"


def _parse(line: str, before: list[GateEntry]) -> tuple[int, GateEntry]:
    """The place of a proposal in the history, from 0, and what a line says of it.

    A line of an earlier version has neither "proposal" nor "most" nor "runs": its proposal is that
    of the same labels, and its most seeds follow from the share of the level at its first look.

    Raises:
        ValueError, OverflowError, KeyError, IndexError, TypeError, AttributeError, RecursionError: it
            is no proposal.
    """
    tree = parse_json(line)
    about = {}
    for key in ("baseline", "candidate", "on"):
        about[key] = str(tree[key])
    if _MARGIN in tree:
        about[_MARGIN] = str(tree[_MARGIN])
    level = float(tree["level"])
    looks = []
    for seeds, share, p in tree["looks"]:
        looks.append((int(seeds), float(share), float(p)))
    decision = str(tree["decision"])
    _check_proposal(level, looks, decision)

    if "runs" in tree:
        number = int(tree["proposal"])
        most = int(tree["most"])
        runs = list(map(str, tree["runs"]))
        baseline_runs = list(map(str, tree["baseline_runs"]))
        last = len(before) + 1
        if not 1 <= number <= last:
            raise ValueError(f"proposal {number}: expected one of 1 to {last}")
        last_seeds, *_ = looks[-1]
        if most < last_seeds and decision == UNDECIDED:
            raise ValueError(f"most {most}: fewer than the seeds of its last look")
        proposal = Proposal(level, most, looks, decision)
        return number - 1, GateEntry(about, proposal, runs, baseline_runs)

    place = len(before)
    for number, one in enumerate(before):
        if one.about == about and one.runs is None:
            place = number
    first_seeds, first_share, _ = looks[0]
    most = math.ceil(first_seeds / first_share - 1e-9)
    proposal = Proposal(level, most, looks, decision)
    return place, GateEntry(about, proposal, None, None)


def _check_proposal(level: float, looks: list[tuple[int, float, float]], decision: str) -> None:
    """Raises:
    ValueError: a number or the decision cannot be.
    """
    if not 0 < level <= 1:
        raise ValueError(f"level {level:g}: expected a number above 0 and up to 1")
    if decision not in (BETTER, NOT_BETTER, UNDECIDED):
        raise ValueError(f'decision "{decision}": expected {BETTER}, {NOT_BETTER} or {UNDECIDED}')
    if not looks:
        raise ValueError("no looks")
    for seeds, share, p in looks:
        if seeds < 1 or not 0 < share <= 1 or not 0 <= p <= 1:
            raise ValueError(f"look {seeds}, {share:g}, {p:g}: expected seeds, share and p")
