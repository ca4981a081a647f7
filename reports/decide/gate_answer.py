"""`harness gate`: keep a proposed change or drop it, with an account of all proposals before it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.locks import work_lock
from harness.files.printable import one_line
from harness.machine import environment
from harness.results.answer import Answer
from reports.decide.question import comparison_of, question_of, two_rows_of
from reports.document.table import number_text
from reports.read.comparison_runs import ResultRow, seeded
from reports.scores.score_table import is_score_table, question_of_scores
from reports.stats.online import BETTER, NOT_BETTER, RATE, UNDECIDED, Proposal, look, next_level
from reports.stats.simultaneous import FEWEST_SEEDS
from reports.stats.verdicts import Question
from reports.with_report import WithReport

if TYPE_CHECKING:
    import pandas as pd

HISTORY = "gate.jsonl"


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
    """Is a candidate better than the baseline, with at most 5 % wrong among all candidates ever
    accepted?

        >>> answer = harness.gate(work, baseline="cls", candidate="mean", history=work / "gate.jsonl")
        >>> answer.data["decision"]
        'better'

    Each new candidate is a proposal, written to the history. The same candidate with more seeds is
    another interim analysis of the same proposal; with the same seeds its answer is repeated
    (`reports.stats.online`).

    Args:
        found: a comparison or its work directory, or scores that others made, as `harness.verdict`
            takes them.
        baseline, candidate: labels of two rows.
        on, comparison: as `harness.verdict` has them.
        most: number of seeds of the candidate after which nothing remains undecided.
        history: the file of all proposals; left out, `gate.jsonl` in the work directory or next to
            the scores.

    Returns:
        In `data`: "decision" ("better", "not better" or "undecided"), "gain" with "low" and "high"
            in points, "p"
        (one-sided, over all analyses), "level", "proposal" (its number), "seeds".

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
    place = found if isinstance(found, str | Path) else getattr(found, "workdir", "")
    if not (history or place):
        raise InputError(
            "gate: scores of a frame need a file for the history of proposals (history=FILE)"
        )
    file = Path(history or (Path(place) if Path(place).is_dir() else Path(place).parent) / HISTORY)
    a, b = two_rows_of(question.comparison.rows, candidate, baseline)
    with work_lock(file.parent, f".{file.name}", f"the history {file}"):
        return _judge(question, a, b, most, file)


def _judge(question: Question, a: ResultRow, b: ResultRow, most: int, file: Path) -> Answer:
    about = {"baseline": b.label, "candidate": a.label, "on": question.target.title}
    known = _read(file)
    number = next((n for n, (what, _) in enumerate(known) if what == about), len(known))
    proposal = (
        known[number][1] if number < len(known) else Proposal(next_level([p for _, p in known]))
    )
    (d,) = question.significance.differences([(a, b)], question.target, "one proposal")
    e = d.estimate if d is not None and d.judged else None
    seeds = d.seeds[0] if d is not None else len(a.finished)
    new = not proposal.looks or seeds > proposal.looks[-1][0]
    if e is not None and new and proposal.decision == UNDECIDED:
        own, other, examples = question.significance.parts(a, b, question.target)
        p = e.p / 2 if e.value > 0 else 1 - e.p / 2
        look(proposal, seeds, most if seeded(a) else seeds, p, e.value, (own, other + examples))
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"time": environment.now(), **about, **asdict(proposal)}) + "\n")
    points = dict.fromkeys(("gain", "low", "high"))
    if e is not None:
        points = {"gain": 100 * e.value, "low": 100 * e.low, "high": 100 * e.high}
    data = {
        **about,
        "decision": proposal.decision,
        "proposal": number + 1,
        "seeds": seeds,
        "most": most,
        **points,
        "p": proposal.p,
        "level": proposal.level,
    }
    return Answer(_describe(data, seeded(a)), data, [data])


def _describe(data: dict[str, Any], grows: bool) -> str:
    pair, seeds, most = (
        f"{data['candidate']} against {data['baseline']}",
        data["seeds"],
        data["most"],
    )
    if data["gain"] is None:
        return one_line(
            f"{UNDECIDED}: {pair} has {seeds} seeds; the first decision needs {FEWEST_SEEDS} of both rows"
        )
    numbers = [number_text(data[key], 2, signed=True) for key in ("gain", "low", "high")]
    end = {
        BETTER: "keep it",
        NOT_BETTER: "drop it"
        if seeds >= most or not grows
        else "drop it: more seeds would hardly change that",
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
