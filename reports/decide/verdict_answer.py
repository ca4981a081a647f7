"""The answer of `harness verdict`, in Python and on the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.printable import one_line
from harness.results.answer import Answer
from reports.decide.question import comparison_of, question_of, two_rows_of
from reports.document.table import TableRow, number_text
from reports.load import RecordedResults
from reports.results import ResultRow, Results, base_name
from reports.scores.score_table import is_score_table, question_of_scores, refuse_with_scores
from reports.stats.significance import Difference
from reports.stats.simultaneous import ALPHA
from reports.stats.verdicts import (
    ALIKE,
    BETTER,
    OPEN,
    WORSE,
    Question,
    Ranking,
    describe_detectable,
    describe_lost_seeds,
    judge_family,
    kind_of,
    own_against_others,
    plan_status,
    planned_family,
    starts,
)
from reports.suite_targets import name_target, primary_target
from reports.tables.certainty import pairs_table
from reports.targets import Target
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
        "high" in points, "p" and "family" (what both are corrected for), "means", "seeds"; of all pairs a list by
        block. `frame()`: one row a pair.

    Raises:
        InputError: no such folder, comparison, row or task, or nothing that can be judged.
    """
    if bool(a) != bool(b):
        raise InputError("verdict: name two rows, or none for all pairs", key="verdict")
    if not 0 <= equivalence <= 100:
        raise InputError(
            f"--equivalence {equivalence:g}: expected a number of points from 0 to 100",
            key="--equivalence",
        )
    left_out = ""
    if is_score_table(found):
        refuse_with_scores(
            block=block,
            comparison=comparison,
            base_model=base_model,
            without_overlap=without_overlap,
        )
        question = question_of_scores(found, on)
    else:
        read = comparison_of(found, comparison, block)
        if without_overlap:
            read, left_out = _leave_out_overlap(read, on)
        question = question_of(read, on)
    if a:
        answer = _two(question, a, b, base_model, equivalence)
    else:
        answer = _all(question, base_model, equivalence)
    if left_out:
        return replace(answer, text=f"{answer.text}\n{one_line(left_out)}")
    return answer


def _leave_out_overlap(read: RecordedResults, on: str) -> tuple[RecordedResults, str]:
    """Return a comparison without the pairs whose sentences occur in a training text, and what was
    left out, in words.

    Raises:
        InputError: nothing remains of the task that was named.
    """
    from reports.records.overlap import without_overlap

    remaining, notes, left_out = without_overlap(read)
    scored = remaining.scored_tasks
    for (task, _), why in notes.items():
        if task.lower() == on.lower() and task not in scored:
            raise InputError(f"--on {on}: {why.removeprefix(f'{task}: ')}", key="--on")
    return remaining, left_out


def _two(
    question: Question,
    first: str,
    second: str,
    base_model: str,
    equivalence: float,
) -> Answer:
    block, a, b = rank_two(question, first, second, base_model)
    difference = judge_two(question, block, a, b)
    data = _as_json(block, a, b, difference, equivalence)
    return Answer(one_line(data["text"]), data, [_pair(data)])


def rank_two(
    question: Question,
    first: str,
    second: str,
    base_model: str,
) -> tuple[Ranking, ResultRow, ResultRow]:
    """Return two rows by their labels, and the rows that they are compared with.

    Raises:
        InputError: no such row, or one without examples.
    """
    a, b = two_rows_of(question.results.rows, first, second, base_model)
    blocks = question.results.blocks
    rows = list(blocks[a.block])
    if b.block != a.block:
        rows += blocks[b.block]
    block = question.block(rows, (a, b))
    known = {row.key for row in block.rows}
    for row in (a, b):
        if row.key not in known:
            lacking = "no finished run"
            if row.finished:
                lacking = f"no run that saved the examples of {question.target.title}"
            label = one_line(row.label)
            raise InputError(f'row "{label}" has {lacking}', key=label)
    return block, a, b


def judge_two(question: Question, block: Ranking, a: ResultRow, b: ResultRow) -> Difference:
    """Judge two rows in the smallest family that was named with them in it; else among all
    pairs.
    """
    made = [make(question.results) for make in (planned_family, own_against_others, starts)]
    families = [family for family in made if family.apart]
    families.sort(key=lambda family: len(family.pairs))
    for family in families:
        if (a, b) not in family.pairs and (b, a) not in family.pairs:
            continue
        judged = dict(judge_family(family, question.significance, question.target))
        if (a, b) in judged:
            return judged[a, b]
        if (b, a) in judged:
            return judged[b, a].reversed
    return block.difference(a, b)


def _all(question: Question, base_model: str, equivalence: float) -> Answer:
    data = []
    lines = []
    rows = []
    for name, block in question.blocks().items():
        if len(block.rows) < 2 or not has_base_model(block, base_model):
            continue
        pairs = []
        for (i, j), difference in sorted(block.differences.items()):
            pair = _as_json(block, block.rows[i], block.rows[j], difference, equivalence)
            pairs.append(pair)
            rows.append({"block": name, **_pair(pair)})
        data.append(
            {
                "block": name,
                "on": question.target.title,
                "family": block.family,
                "rows": list(map(block.name, block.rows)),
                "left_out": list(map(block.name, block.left_out)),
                "may_be_best": list(map(block.name, block.candidates)),
                "groups": block.describe_groups(),
                "ranks": {block.name(row): block.rank_interval(row) for row in block.judged},
                "order": block.describe_order(),
                "pairs": pairs,
            }
        )
        lines += _table(name, block)
    if not data:
        why = _why_no_pair(question.results, question.target)
        raise InputError(why, file=question.results.name)
    return Answer("\n".join(lines), data, rows)


def has_base_model(block: Ranking, base_model: str) -> bool:
    """True if a row of the block has the base model, which may be named without its owner; or if
    none was named.
    """
    names = {""}
    for row in block.rows:
        names |= {row.base_model, base_name(row.base_model)}
    return base_model in names


def _why_no_pair(comparison: Results, target: Target) -> str:
    """Return why no two rows are compared."""
    own = [row for row in comparison.rows if not row.added]
    finished = [row.label for row in own if row.finished]
    if len(own) == 1:
        return f'"{own[0].label}" is the only row; a verdict compares two'
    if len(finished) < 2:
        known = "no row"
        if finished:
            known = f'"{finished[0]}" alone'
        return f"of {len(own)} rows {known} has finished runs; a verdict compares two"
    return f"no two rows that are compared saved the examples of {target.title}"


def _pair(data: dict[str, Any]) -> dict[str, Any]:
    """The numbers of one pair as a line of a frame."""
    line = {}
    for key, value in data.items():
        if key != "text" and not isinstance(value, list):
            line[key] = value
    line["mean_a"], line["mean_b"] = data["means"]
    line["seeds_a"], line["seeds_b"] = data["seeds"]
    return line


def _table(name: str, block: Ranking) -> list[str]:
    """Return the matrix of differences, row minus column in points, best rows first; the groups; and
    what a reader should know of both.
    """
    title = f"{block.target.title}; row minus column in points"
    if name:
        title = f"{name}: {title}"
    table = pairs_table(block, name, len(block.rows))
    heads = [column.title for column in table.columns]
    lines = [one_line(title), *_align(heads, table.rows), *table.legend]
    if len(block.judged) > 1:
        if block.candidates:
            best = ", ".join(map(block.name, block.candidates))
            lines.append(f"may be the best (95 %){_of_judged(block)}: {one_line(best)}")
        lines.append("groups of rows that do not differ significantly, best first:")
        lines += [f"  {one_line(text)}" for text in block.describe_groups()]

    remarks = [block.describe_order(), block.describe_left_out()]
    if lost := describe_lost_seeds(block.rows):
        remarks.append(f"{lost}.")
    if note := block.significance.results.note:
        remarks.append(f"Note: {note}.")
    return lines + [one_line(remark) for remark in remarks if remark]


def _of_judged(block: Ranking) -> str:
    """Return of which rows one is the best, where some are not judged."""
    if not block.unjudged:
        return ""
    return f" of the {len(block.judged)} rows that can be judged"


def _align(titles: Sequence[str], rows: Sequence[TableRow]) -> list[str]:
    """Return the lines of a table in columns; names, in the second one, begin at the left."""
    lines = [list(map(one_line, titles))]
    for row in rows:
        lines.append([one_line(cell.text) for cell in row.cells])
    widths = []
    for column in zip(*lines, strict=True):
        widths.append(max(map(len, column)))
    found = []
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        cells[1] = line[1].ljust(widths[1])
        found.append("  ".join(cells))
    return found


def _paragraph(
    block: Ranking,
    a: ResultRow,
    b: ResultRow,
    d: Difference,
    equivalence: float,
) -> str:
    """Return what a reader may quote."""
    if not d.judged:
        return _describe_unjudged(block, a, b, d)
    start = _describe_verdict(block, a, b, d, equivalence)
    numbers = _describe_numbers(block, a, b, d)
    text = f"{start}: {numbers}; {_describe_p(block, d)}"
    analyses = block.significance.results.analyses
    if analyses is not None:
        text += f" and {len(analyses.seeds)} interim analyses"
    text += "."
    named = _plan_as_json(block, a, b).get("plan")
    if named:
        text += f" This pair is {named}."
    if d.estimate.low < d.estimate.high:
        least = block.detectable_of(a, b, d.estimate)
        text += f" Between these two rows, {describe_detectable(least)}."
    return text + _describe_notes(block, a, b)


def _describe_unjudged(block: Ranking, a: ResultRow, b: ResultRow, d: Difference) -> str:
    """Return the same of two rows of which one has too few seeds."""
    few = " and ".join(block.name(row) for row in (a, b) if row in block.unjudged)
    note = _describe_notes(block, a, b)
    scope = ", where the interval covers the examples only, not the seeds"
    if d.estimate.low >= d.estimate.high:
        scope = ""
        note = _without_claims(note)
    title = name_target(block.significance.results, block.target)
    numbers = _describe_numbers(block, a, b, d)
    return (
        f"{block.name(a)} and {block.name(b)} cannot be judged on {title}: {numbers}{scope}. "
        f"Fewer than three seeds of {few} are too few to estimate their spread.{note}"
    )


def _describe_verdict(
    block: Ranking,
    a: ResultRow,
    b: ResultRow,
    d: Difference,
    equivalence: float,
) -> str:
    """Return which row is better, the start of a sentence."""
    title = name_target(block.significance.results, block.target)
    first = block.name(a)
    second = block.name(b)
    kind = kind_of(d, equivalence)
    if kind == OPEN:
        return f"Whether {first} or {second} is better on {title} cannot be decided yet"
    if kind == ALIKE and d.estimate.p > ALPHA:
        little = f"nothing that matters (less than {equivalence:g} points)"
        return f"{first} and {second} differ by {little} on {title}"
    if d.estimate.value > 0:
        side = BETTER
    else:
        side = WORSE
    start = f"{first} is {side} than {second} on {title}"
    if kind == ALIKE:
        start += f", by less than {equivalence:g} points, which is no difference that matters"
    return start


def _describe_numbers(block: Ranking, a: ResultRow, b: ResultRow, d: Difference) -> str:
    """Return both means, the difference with its interval, and the seeds."""
    mean_a = number_text(block.mean(a), 2)
    mean_b = number_text(block.mean(b), 2)
    e = d.estimate
    value = number_text(100 * e.value, 2, signed=True)
    points = f"{value} points"
    if e.low < e.high:
        low = number_text(100 * e.low, 2, signed=True)
        high = number_text(100 * e.high, 2, signed=True)
        points += f" [{low}, {high}]"
    one, other = d.seeds
    if one != other:
        seeds = f"{one} and {other} seeds"
    elif one == 1:
        seeds = "1 seed each"
    else:
        seeds = f"{one} seeds each"
    return f"{mean_a} against {mean_b}, {points} ({seeds})"


def _describe_p(block: Ranking, d: Difference) -> str:
    """Return the p-value and what it is corrected for; of many pairs it is a q, the share of wrong
    ones among all pairs that are called different.
    """
    letter = block.letter_of(d.family)
    value = f"= {d.estimate.p:.3f}"
    if d.estimate.p < 1e-3:
        value = "< 0.001"
    text = f"{letter} {value}, corrected for {d.family}"
    if letter == "q":
        text += (
            f"; of all pairs that are called different, at most {ALPHA:.0%} are wrong in "
            "expectation"
        )
    return text


def _describe_notes(block: Ranking, a: ResultRow, b: ResultRow) -> str:
    """Return which seeds were lost and what is not known, as further sentences."""
    text = ""
    lost = describe_lost_seeds((a, b))
    if lost:
        text += f" {lost}, which flatters a row that sometimes fails."
    if block.significance.results.note:
        text += f" Note: {block.significance.results.note}."
    return text


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
    pairs = planned_family(comparison).pairs
    if (a, b) in pairs or (b, a) in pairs:
        found["plan"] = plan_status(comparison)
    return found


def _as_json(
    block: Ranking,
    a: ResultRow,
    b: ResultRow,
    d: Difference,
    equivalence: float,
) -> dict[str, Any]:
    """Every number of a verdict; differences in points, with an interval where seeds or examples
    give one.
    """
    known = d.judged or d.estimate.low < d.estimate.high
    analyses = block.significance.results.analyses
    return {
        "a": block.name(a),
        "b": block.name(b),
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
