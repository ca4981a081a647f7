"""The answer of `harness verdict`, in Python and on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.printable import one_line
from harness.results.answer import Answer
from reports.decide.question import Compared, Question, comparison_of, question_of, row_of
from reports.document.table import number_text
from reports.read.comparison_runs import base_name
from reports.stats.power import CHANCE
from reports.stats.significance import NOT_JUDGED
from reports.stats.verdicts import ALIKE, BETTER, OPEN, Block, Verdict, seen_text

_MARKS = {"not separable": "=", NOT_JUDGED: "?"}  # separated: "*"
_MARKED = "* more than chance (0.05, corrected for all pairs); = not separable, may be chance; ? one seed, not judged"


def verdict(
    found: Compared | str | Path,
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
    """Is row `a` better than row `b`, and how sure is that? Without them: all pairs of rows, and which are not
    significantly different.

        >>> harness.verdict(work, "mean", "cls").data["verdict"]
        'better'

    Args:
        found: a comparison, or the work directory of one.
        a, b: labels of rows.
        on: what to compare by: "STS", a task, a suite, a block; as the report does, when left out.
        block: one block of the file, on what it asks for.
        comparison: its name, where the work directory holds several.
        base_model: where a row has several.
        equivalence: points; less is no difference that matters.
        without_overlap: leave out the pairs of which a sentence occurs in the training text of a row.

    Returns:
        In `data`: "verdict" ("better", "worse", "no difference", ...), "difference" with "low" and "high" in points
        (corrected for all pairs of rows), "p", "means", "seeds"; of all pairs a list by base model. `frame()`: one row
        a pair.

    Raises:
        InputError: no such folder, comparison, row or task, or nothing that can be judged.
    """
    if bool(a) != bool(b):
        raise InputError("verdict: name two rows, or none for all pairs")
    if equivalence < 0:
        raise InputError(f"--equivalence {equivalence:g}: a number of points, 0 or more")
    read, left_out = comparison_of(found, comparison, block), ""
    if without_overlap:
        from reports.read.overlap import without_overlap as leave_out

        read, notes, left_out = leave_out(read)
        scored = {score.task for record in read.records for score in record.scores}
        for (task, _), why in notes.items():
            if task.lower() == on.lower() and task not in scored:
                raise InputError(f"--on {on}: {why.removeprefix(f'{task}: ')}")
    question = question_of(read, on)
    answer = _two(question, a, b, base_model, equivalence) if a else _all(question, base_model, equivalence)
    return replace(answer, text=f"{answer.text}\n{one_line(left_out)}") if left_out else answer


def _two(question: Question, first: str, second: str, base_model: str, equivalence: float) -> Answer:
    a, b = (row_of(question.comparison.rows, label, base_model) for label in (first, second))
    if a.key == b.key:
        raise InputError(f'"{one_line(a.label)}" is one row: name two')
    block = question.block((a.base_model, b.base_model), (a, b))
    for row in (a, b):
        if row.key not in {one.key for one in block.rows}:
            lacking = (
                "no finished run" if not row.finished else f"no run that saved the examples of {question.target.title}"
            )
            raise InputError(f'row "{one_line(row.label)}" has {lacking}')
    found = block.verdict(a, b, equivalence)
    data = _as_json(found, block, equivalence)
    return Answer(one_line(_paragraph(found, block, equivalence)), data, [_pair(data)])


def _all(question: Question, base_model: str, equivalence: float) -> Answer:
    comparison, target = question.comparison, question.target
    bases = [base for base in comparison.base_models if not base_model or base_model in (base, base_name(base))]
    found = [(base, block) for base in bases if len((block := question.block((base,))).rows) > 1]
    if not found:
        raise InputError(f"{comparison.name}: no two rows of one base model saved the examples of {target.title}")
    data = [
        {
            "base_model": base,
            "on": target.title,
            "rows": [row.label for row in block.rows],
            "groups": block.describe_groups(),
            "pairs": [
                _as_json(block.verdict(a, b, equivalence), block, equivalence)
                for i, a in enumerate(block.rows)
                for b in block.rows[i + 1 :]
            ],
        }
        for base, block in found
    ]
    lines = [line for base, block in found for line in _table(base, block, target.title)]
    rows = [{"base_model": one["base_model"], **_pair(pair)} for one in data for pair in one["pairs"]]  # type: ignore[arg-type]
    return Answer("\n".join(lines), data, rows)


def _pair(data: dict[str, Any]) -> dict[str, Any]:
    """The numbers of one pair as a line of a frame."""
    means, seeds = data["means"], data["seeds"]
    flat = {key: value for key, value in data.items() if not isinstance(value, list) and key != "text"}
    return {**flat, "mean_a": means[0], "mean_b": means[1], "seeds_a": seeds[0], "seeds_b": seeds[1]}


def _table(base: str, block: Block, title: str) -> list[str]:
    """The matrix of differences and the groups of ties."""
    lines = [["", "", "mean", *(str(i + 1) for i in range(len(block.rows)))], *_matrix(block)]
    cells = [[one_line(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def aligned(line: list[str]) -> str:
        texts = [c.ljust(w) if i == 1 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))]
        return "  ".join(texts).rstrip()

    return [
        one_line(f"{base_name(base)}: {title}; row minus column in points, {len(block.judged)} rows judged"),
        *map(aligned, cells),
        _MARKED,
        "not significantly different, best first:",
        *(f"  {one_line(text)}" for text in block.describe_groups()),
        *filter(None, [seen_text(block)]),
    ]


def _paragraph(verdict: Verdict, block: Block, equivalence: float) -> str:
    """What a reader may quote."""
    a, b, title = verdict.a.label, verdict.b.label, verdict.target.title
    d = verdict.difference
    e = d.estimate
    low, high = (number_text(100 * x, 2, signed=True) for x in (e.low, e.high))
    seeds = f"{d.seeds[0]} and {d.seeds[1]} seeds" if d.seeds[0] != d.seeds[1] else f"{_count(d.seeds[0])} each"
    measured = " against ".join(number_text(block.mean(row), 2) for row in (verdict.a, verdict.b))
    numbers = f"{measured}, {number_text(100 * e.value, 2, signed=True)} points [{low}, {high}] ({seeds})"
    if verdict.kind == NOT_JUDGED:
        alone = " and ".join(row.label for row in (verdict.a, verdict.b) if row not in block.judged)
        return (
            f"{a} and {b} cannot be judged on {title}: {numbers}, where the interval has the chance of the examples "
            f"only. Of {alone} there is one seed, and how much another would change is not known."
        )
    start = {
        BETTER: f"{a} is better than {b} on {title}",
        ALIKE: f"{a} and {b} differ by nothing that matters (less than {equivalence:g} points) on {title}",
        OPEN: f"Whether {a} or {b} is better on {title} cannot be decided yet",
    }.get(verdict.kind, f"{a} is worse than {b} on {title}")
    p = "p < 0.001" if e.p < 1e-3 else f"p = {e.p:.3f}"
    text = f"{start}: {numbers}; interval and {p} are corrected for all pairs of {len(block.judged)} rows"
    analyses = block.significance.comparison.analyses
    text += f" and {len(analyses.seeds)} interim analyses." if analyses is not None else "."
    if verdict.another_seed is not None and 0 < verdict.another_seed < 1:
        text += f" One more seed of {a} would be ahead of one of {b} with probability {verdict.another_seed:.2f}."
    if verdict.detectable is not None:
        text += f" This design finds differences from {verdict.detectable:.1f} points on in {CHANCE:.0%} of cases."
    if verdict.kind == OPEN and verdict.needed:
        text += f" For a difference as large as the one measured, about {verdict.needed} seeds of every row are needed."
    elif verdict.kind == OPEN:
        text += " A difference as large as the one measured would not show with 100 seeds: it takes more examples."
    return text


def _count(seeds: int) -> str:
    return f"{seeds} seed{'' if seeds == 1 else 's'}"


def _as_json(verdict: Verdict, block: Block, equivalence: float) -> dict[str, Any]:
    """Every number of a verdict; differences in points."""
    d = verdict.difference
    analyses = block.significance.comparison.analyses
    return {
        "a": verdict.a.label,
        "b": verdict.b.label,
        "on": verdict.target.title,
        "tasks": [f"{one.source}:{one.task}" for one in verdict.target.measures],
        "verdict": verdict.kind,
        "means": [block.mean(verdict.a), block.mean(verdict.b)],
        "seeds": list(d.seeds),
        "difference": 100 * d.estimate.value,
        "low": 100 * d.estimate.low,
        "high": 100 * d.estimate.high,
        "p": d.estimate.p if d.judged else None,
        "corrected_for_rows": len(block.judged),
        **({"corrected_for_interim_analyses": len(analyses.seeds)} if analyses is not None else {}),
        "equivalence": equivalence,
        "another_seed_ahead": verdict.another_seed,
        "detectable": verdict.detectable,
        "seeds_needed": verdict.needed,
        "text": _paragraph(verdict, block, equivalence),
    }


def _matrix(block: Block) -> list[list[str]]:
    """Row minus column in points, with "*" (separated), "=" (not separable) or "?" (not judged); best rows first."""
    found = block.differences()
    lines = []
    for i, row in enumerate(block.rows):
        cells = [str(i + 1), row.label, f"{block.mean(row):.2f}"]
        for j in range(len(block.rows)):
            if i == j:
                cells.append("")
                continue
            d = found[min(i, j), max(i, j)]
            value = 100 * d.estimate.value * (1 if i < j else -1)
            cells.append(f"{round(value, 2) + 0.0:+.2f}{_MARKS.get(d.verdict, '*')}")
        lines.append(cells)
    return lines
