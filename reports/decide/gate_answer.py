"""`harness gate`: keep a proposed change or drop it, with an account of all proposals before it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.locks import work_lock
from harness.files.printable import one_line
from harness.results.answer import Answer
from reports.decide.question import Question, comparison_of, question_of, row_of
from reports.document.table import number_text
from reports.read.comparison_runs import seeded
from reports.scores.score_table import is_score_table, question_of_scores
from reports.stats.estimate import Estimate
from reports.stats.online import BETTER, NOT_BETTER, RATE, UNDECIDED, Proposal, look, next_level
from reports.stats.simultaneous import FEWEST_SEEDS
from reports.with_report import WithReport

if TYPE_CHECKING:
    import pandas as pd

HISTORY = "gate.jsonl"


@dataclass(frozen=True)
class _Gain:
    """The candidate less the baseline in points; `variances`: by the candidate's seeds, and by all else."""

    title: str
    estimate: Estimate | None
    seeds: int
    grows: bool
    variances: tuple[float, float] = (0.0, 0.0)


def gate(
    found: WithReport | str | Path | pd.DataFrame,
    *,
    baseline: str,
    candidate: str,
    on: str = "",
    comparison: str = "",
    most: int = 10,
    history: str | Path = "",
) -> Answer:
    """Is a candidate better than the baseline, with at most 5 % wrong among all candidates ever accepted?

        >>> answer = harness.gate(work, baseline="cls", candidate="mean", history=work / "gate.jsonl")
        >>> answer.data["decision"]
        'better'

    Each new candidate is a proposal, written to the history. The same candidate with more seeds is another look at the
    same proposal; with the same seeds its answer is repeated (`reports.stats.online`).

    Args:
        found: a comparison or its work directory, or scores that others made, as `harness.verdict` takes them.
        baseline, candidate: labels of two rows.
        on, comparison: as `harness.verdict` has them.
        most: seeds of the candidate at which it is decided at the latest.
        history: the file of all proposals; left out, `gate.jsonl` in the work directory or beside the scores.

    Returns:
        In `data`: "decision" ("better", "not better" or "undecided"), "gain" with "low" and "high" in points, "p"
        (one-sided, over all looks), "level", "proposal" (its number), "seeds".

    Raises:
        InputError: no such row, a damaged history, or `most` below 3.
    """
    if most < FEWEST_SEEDS:
        raise InputError(f"--most {most}: expected a number of seeds, {FEWEST_SEEDS} or more")
    if baseline == candidate:
        raise InputError(f'"{one_line(baseline)}" is baseline and candidate: name two rows')
    if is_score_table(found):
        question = question_of_scores(found, on, (baseline, candidate))
    else:
        question = question_of(comparison_of(found, comparison), on)
    gain = _gain_of(question, baseline, candidate)
    place = Path(found) if isinstance(found, str | Path) else getattr(found, "workdir", None)
    if place is None and not history:
        raise InputError("gate: scores of a frame need a file for the history of proposals (history=FILE)")
    file = Path(history or (place if place.is_dir() else place.parent) / HISTORY)
    with work_lock(file.parent, f".{file.name}", f"the history {file}"):
        return _judge(gain, baseline, candidate, most, file)


def _judge(gain: _Gain, baseline: str, candidate: str, most: int, file: Path) -> Answer:
    about = {"baseline": baseline, "candidate": candidate, "on": gain.title}
    known = _read(file)
    number = next((n for n, (what, _) in enumerate(known) if what == about), len(known))
    proposal = known[number][1] if number < len(known) else Proposal(next_level([p for _, p in known]))
    new = not proposal.looks or gain.seeds > proposal.looks[-1][0]
    if gain.estimate is not None and new and proposal.decision == UNDECIDED:
        p = gain.estimate.p / 2 if gain.estimate.value > 0 else 1 - gain.estimate.p / 2
        look(proposal, gain.seeds, most if gain.grows else gain.seeds, p, gain.estimate.value, gain.variances)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"time": now, **about, **asdict(proposal)}) + "\n")
    e = gain.estimate
    data = {
        **about, "decision": proposal.decision, "proposal": number + 1, "seeds": gain.seeds, "most": most,
        "gain": e and e.value, "low": e and e.low, "high": e and e.high, "p": proposal.p, "level": proposal.level,
    }  # fmt: skip
    return Answer(_describe(data, gain.grows), data, [data])


def _describe(data: dict[str, Any], grows: bool) -> str:
    pair, seeds, most = f"{data['candidate']} against {data['baseline']}", data["seeds"], data["most"]
    if data["gain"] is None:
        return one_line(f"{UNDECIDED}: {pair} has {seeds} seeds; the first look takes {FEWEST_SEEDS} of both rows")
    numbers = [number_text(data[key], 2, signed=True) for key in ("gain", "low", "high")]
    end = {
        BETTER: "keep it",
        NOT_BETTER: "drop it" if seeds >= most or not grows else "drop it: more seeds would hardly change that",
    }.get(data["decision"], f"add seeds to {data['candidate']}, up to {most}")
    return one_line(
        f"{data['decision']}: {pair} on {data['on']}: {numbers[0]} points [{numbers[1]}, {numbers[2]}] with {seeds} "
        f"seeds; p = {data['p']:.2g} at the level {data['level']:.2g} of proposal {data['proposal']} (at most "
        f"{RATE:.0%} of the accepted ones are wrong); {end}"
    )


def _read(file: Path) -> list[tuple[dict[str, str], Proposal]]:
    """Every proposal as its last look left it, in the order of the first looks."""
    found: dict[tuple[str, ...], tuple[dict[str, str], Proposal]] = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines() if file.exists() else (), 1):
        try:
            entry = json.loads(line)
            about = {key: str(entry[key]) for key in ("baseline", "candidate", "on")}
            looks = [(int(seeds), float(share), float(p)) for seeds, share, p in entry["looks"]]
            proposal = Proposal(float(entry["level"]), looks, str(entry["decision"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{file}, line {number}: not a proposal ({error}); restore the file, or begin another with --history"
            ) from None
        found[tuple(about.values())] = (about, proposal)
    return list(found.values())


def _gain_of(question: Question, baseline: str, candidate: str) -> _Gain:
    a, b = (row_of(question.comparison.rows, label, "") for label in (candidate, baseline))
    difference = question.significance.differences([(a, b)], question.target, "one proposal")[0]
    title = question.target.title
    if difference is None or not difference.judged:
        return _Gain(title, None, len(a.finished), True)
    e = difference.estimate
    own, other, examples = (1e4 * part for part in question.significance.parts(a, b, question.target))
    points = Estimate(100 * e.value, 100 * e.low, 100 * e.high, e.p)
    return _Gain(title, points, difference.seeds[0], seeded(a), (own, other + examples))
