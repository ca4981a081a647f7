"""The answer of `harness verdict`, in Python and on the command line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.printable import one_line
from harness.results.answer import Answer
from reports.decide.question import comparison_of, question_of, two_rows_of
from reports.document.table import number_text
from reports.results import ResultRow, base_name
from reports.scores.score_table import is_score_table, question_of_scores
from reports.stats.significance import NOT_JUDGED, Difference
from reports.stats.simultaneous import ALPHA, EXPLORED
from reports.stats.verdicts import (
    ALIKE,
    BETTER,
    OPEN,
    Question,
    Ranking,
    describe_detectable,
    describe_lost_seeds,
    judge_family,
    kind_of,
    own_against_others,
    plan_status,
    planned,
    starts,
)
from reports.suite_targets import name_target, primary_target
from reports.tables.certainty import pairs_table
from reports.with_report import WithReport

if TYPE_CHECKING:
    from reports.read.score_tables import Source


def verdict(
    found: WithReport | Source,
    a: str = "",
    b: str = "",
    *,
    on: str = "",
    block: str = "",
    comparison: str = "",
    base_model: str = "",
    equivalence: float = 0.5,
    without_overlap: bool = False,
) -> Answer:
    """Is row `a` better than row `b`, and how sure is that? Without them: all pairs of rows, and
    which are not significantly different.

        >>> harness.verdict(work, "mean", "cls").data["verdict"]
        'better'

    Args:
        found: a comparison, or the work directory of one; or scores that others made, as
            `read_scores` takes them.
        a, b: labels of rows.
        on: what to compare by: "STS", a task, a suite, a block; as the report does, when left out.
        block: one block of the file: only its rows and suites.
        comparison: its name, where the work directory holds several.
        base_model: where a row has several.
        equivalence: points; less is no difference that matters.
        without_overlap: leave out the pairs of which a sentence occurs in the training text of a
            row.

    Returns:
        In `data`: "verdict" ("better", "worse", "no difference", ...), "difference" with "low" and
            "high" in points,
        "p" and "family" (what both are corrected for), "means", "seeds"; of all pairs a list by
        block. `frame()`: one row a pair.

    Raises:
        InputError: no such folder, comparison, row or task, or nothing that can be judged.
    """
    if bool(a) != bool(b):
        raise InputError("verdict: name two rows, or none for all pairs")
    if equivalence < 0:
        raise InputError(f"--equivalence {equivalence:g}: a number of points, 0 or more")
    left_out = ""
    if is_score_table(found):
        question = question_of_scores(found, on)
    else:
        read = comparison_of(found, comparison, block)
        if without_overlap:
            from reports.records.overlap import without_overlap as leave_out

            read, notes, left_out = leave_out(read)
            scored = {score.task for record in read.records for score in record.scores}
            for (task, _), why in notes.items():
                if task.lower() == on.lower() and task not in scored:
                    raise InputError(f"--on {on}: {why.removeprefix(f'{task}: ')}")
        question = question_of(read, on)
    answer = (
        _two(question, a, b, base_model, equivalence)
        if a
        else _all(question, base_model, equivalence)
    )
    return replace(answer, text=f"{answer.text}\n{one_line(left_out)}") if left_out else answer


def _two(
    question: Question, first: str, second: str, base_model: str, equivalence: float
) -> Answer:
    block, a, b = rank_two(question, first, second, base_model)
    data = _as_json(block, a, b, judge_two(question, block, a, b), equivalence)
    return Answer(one_line(data["text"]), data, [_pair(data)])


def rank_two(
    question: Question, first: str, second: str, base_model: str
) -> tuple[Ranking, ResultRow, ResultRow]:
    """Return two rows by their labels, and the rows that they are compared with.

    Raises:
        InputError: no such row, or one without examples.
    """
    a, b = two_rows_of(question.results.rows, first, second, base_model)
    blocks = question.results.blocks
    block = question.block(
        [row for name in dict.fromkeys((a.block, b.block)) for row in blocks[name]], (a, b)
    )
    for row in (a, b):
        if row.key not in {one.key for one in block.rows}:
            lacking = (
                "no finished run"
                if not row.finished
                else f"no run that saved the examples of {question.target.title}"
            )
            raise InputError(f'row "{one_line(row.label)}" has {lacking}')
    return block, a, b


def judge_two(question: Question, block: Ranking, a: ResultRow, b: ResultRow) -> Difference:
    """Judge two rows in the smallest family that was named with them in it; else among all
    pairs.
    """
    made = [make(question.results) for make in (planned, own_against_others, starts)]
    families = [family for family in made if family.apart]
    for family in sorted(families, key=lambda family: len(family.pairs)):
        if (a, b) in family.pairs or (b, a) in family.pairs:
            judged = dict(judge_family(family, question.significance, question.target))
            judged = {(y, x): d.reversed for (x, y), d in judged.items()} | judged
            if (a, b) in judged:
                return judged[a, b]
    return block.difference(a, b)


def _all(question: Question, base_model: str, equivalence: float) -> Answer:
    comparison, target = question.results, question.target
    found = {
        name: block
        for name, block in question.blocks().items()
        if len(block.rows) > 1
        and any(base_model in ("", r.base_model, base_name(r.base_model)) for r in block.rows)
    }
    if not found:
        raise InputError(
            f"{comparison.name}: no two rows that are compared saved the examples of {target.title}"
        )
    data = [
        {
            "block": name,
            "on": target.title,
            "family": block.family,
            "rows": [row.label for row in block.rows],
            "left_out": [row.label for row in block.left_out],
            "may_be_best": [row.label for row in block.candidates],
            "groups": block.describe_groups(),
            "ranks": {row.label: block.rank_interval(row) for row in block.judged},
            "order": block.describe_order(),
            "pairs": [
                _as_json(block, block.rows[i], block.rows[j], d, equivalence)
                for (i, j), d in sorted(block.differences.items())
            ],
        }
        for name, block in found.items()
    ]
    lines = [line for name, block in found.items() for line in _table(name, block)]
    rows = [{"block": one["block"], **_pair(pair)} for one in data for pair in one["pairs"]]  # type: ignore[arg-type]
    return Answer("\n".join(lines), data, rows)


def _pair(data: dict[str, Any]) -> dict[str, Any]:
    """The numbers of one pair as a line of a frame."""
    means, seeds = data["means"], data["seeds"]
    flat = {
        key: value for key, value in data.items() if not isinstance(value, list) and key != "text"
    }
    return {
        **flat,
        "mean_a": means[0],
        "mean_b": means[1],
        "seeds_a": seeds[0],
        "seeds_b": seeds[1],
    }


def _table(name: str, block: Ranking) -> list[str]:
    """The matrix of differences, row minus column in points, best rows first; and the groups."""
    table = pairs_table(block, name, len(block.rows))
    lines = [
        [column.title for column in table.columns],
        *([cell.text for cell in row.cells] for row in table.rows),
    ]
    cleaned = [[one_line(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)]
    where = f"{name}: " if name else ""
    tested = []
    if len(block.judged) > 1:
        best = ", ".join(row.label for row in block.candidates)
        tested += [f"may be the best (95 %): {one_line(best)}"] if best else []
        tested.append("not significantly different, best first:")
        tested += [f"  {one_line(text)}" for text in block.describe_groups()]
    return [
        one_line(f"{where}{block.target.title}; row minus column in points"),
        *(
            "  ".join(
                c.ljust(w) if i == 1 else c.rjust(w)
                for i, (c, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in cleaned
        ),
        *table.legend,
        *tested,
        *([one_line(order)] if (order := block.describe_order()) else ()),
        *([one_line(left_out)] if (left_out := block.describe_left_out()) else ()),
        *([one_line(f"{lost}.")] if (lost := describe_lost_seeds(block.rows)) else ()),
        *([f"Note: {one_line(note)}."] if (note := block.significance.results.note) else ()),
    ]


def _paragraph(
    block: Ranking, a: ResultRow, b: ResultRow, d: Difference, equivalence: float
) -> str:
    """What a reader may quote."""
    note = f" Note: {block.significance.results.note}." if block.significance.results.note else ""
    if lost := describe_lost_seeds((a, b)):
        note = f" {lost}, which flatters a row that sometimes fails.{note}"
    comparison = block.significance.results
    title, e, kind = name_target(comparison, block.target), d.estimate, kind_of(d, equivalence)
    low, high = (number_text(100 * x, 2, signed=True) for x in (e.low, e.high))
    one, other = d.seeds
    seeds = f"{one} and {other} seeds" if one != other else f"{one} seed{'s' * (one != 1)} each"
    measured = " against ".join(number_text(block.mean(row), 2) for row in (a, b))
    interval = f" [{low}, {high}]" if e.low < e.high else ""
    numbers = f"{measured}, {number_text(100 * e.value, 2, signed=True)} points{interval} ({seeds})"
    if kind == NOT_JUDGED:
        few = " and ".join(row.label for row in (a, b) if row in block.unjudged)
        scope = ", where the interval covers the examples only, not the seeds" if interval else ""
        if not interval:
            note = _without_claims(note)
        return (
            f"{a.label} and {b.label} cannot be judged on {title}: {numbers}{scope}. Fewer than three seeds of {few} "
            f"are too few to estimate their spread.{note}"
        )
    start = {
        BETTER: f"{a.label} is better than {b.label} on {title}",
        ALIKE: f"{a.label} and {b.label} differ by nothing that matters (less than {equivalence:g} points) on {title}",
        OPEN: f"Whether {a.label} or {b.label} is better on {title} cannot be decided yet",
    }.get(kind, f"{a.label} is worse than {b.label} on {title}")
    if kind == ALIKE and e.p <= ALPHA:
        side = "better" if e.value > 0 else "worse"
        start = (
            f"{a.label} is {side} than {b.label} on {title}, by less than {equivalence:g} points, "
            "which is no difference that matters"
        )
    explored = d.family == block.family and len(block.contenders) >= EXPLORED
    letter = "q" if explored else "p"  # the share of wrong ones among all pairs that are found
    p = f"{letter} < 0.001" if e.p < 1e-3 else f"{letter} = {e.p:.3f}"
    rate = (
        f"; of all pairs that are called different, at most {ALPHA:.0%} are wrong in expectation"
        if explored
        else ""
    )
    text = f"{start}: {numbers}; {p}, corrected for {d.family}{rate}"
    analyses = comparison.analyses
    text += f" and {len(analyses.seeds)} interim analyses." if analyses is not None else "."
    named = _plan_as_json(block, a, b).get("plan")
    if named:
        text += f" This pair is {named}."
    if e.low < e.high:
        least = block.detectable_of(a, b, e)
        text += f" Between these two rows, {describe_detectable(least)}."
    return text + note


def _without_claims(note: str) -> str:
    """Return what is not known, without what a verdict holds for: there is none."""
    return re.sub(r", so this holds for [^;.]*", "", note)


def _plan_as_json(block: Ranking, a: ResultRow, b: ResultRow) -> dict[str, Any]:
    """Return what was planned of a verdict: nothing where the file names neither the pair nor a
    primary score.
    """
    comparison = block.significance.results
    found: dict[str, Any] = {}
    if comparison.primary:
        found["primary"] = block.target == primary_target(comparison)
    pairs = planned(comparison).pairs
    if (a, b) in pairs or (b, a) in pairs:
        found["plan"] = plan_status(comparison)
    return found


def _as_json(
    block: Ranking, a: ResultRow, b: ResultRow, d: Difference, equivalence: float
) -> dict[str, Any]:
    """Every number of a verdict; differences in points, with an interval where seeds or examples
    give one.
    """
    known = d.judged or d.estimate.low < d.estimate.high
    analyses = block.significance.results.analyses
    return {
        "a": a.label,
        "b": b.label,
        "on": block.target.title,
        "tasks": [f"{one.source}:{one.task}" for one in block.target.measures],
        "verdict": kind_of(d, equivalence),
        "means": [block.mean(a), block.mean(b)],
        "seeds": list(d.seeds),
        "difference": 100 * d.estimate.value,
        "low": 100 * d.estimate.low if known else None,
        "high": 100 * d.estimate.high if known else None,
        "p": d.estimate.p if d.judged else None,
        "family": d.family,
        **_plan_as_json(block, a, b),
        **({"corrected_for_interim_analyses": len(analyses.seeds)} if analyses is not None else {}),
        "equivalence": equivalence,
        "detectable": block.detectable_of(a, b, d.estimate) if known and d.judged else None,
        "text": _paragraph(block, a, b, d, equivalence),
    }
