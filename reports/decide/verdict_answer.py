"""The answers of `harness verdict` and `harness power`, in Python and on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.printable import one_line
from harness.results.answer import Answer
from reports.decide.question import Question, comparison_of, question_of, row_of
from reports.decide.words import as_json, groups_text, matrix, paragraph
from reports.read.comparison_runs import base_name
from reports.stats.verdicts import Block, seen_text

_MARKED = "* more than chance (0.05, corrected for all pairs); = not separable, may be chance; ? one seed, not judged"


def verdict(
    workdir: Path,
    rows: Sequence[str] = (),
    *,
    on: str = "",
    block: str = "",
    comparison: str = "",
    base_model: str = "",
    equivalence: float = 0.5,
    without_overlap: bool = False,
) -> Answer:
    """See `harness.verdict`.

    Raises:
        InputError: no such folder, comparison, block, row or task, or nothing that can be judged.
    """
    if len(rows) not in (0, 2) or not all(rows):
        raise InputError("harness verdict WORKDIR A B: name two rows, or none for all pairs")
    if equivalence < 0:
        raise InputError(f"--equivalence {equivalence:g}: a number of points, 0 or more")
    read, told = comparison_of(workdir, comparison, block), ""
    if without_overlap:
        from reports.read.without_overlap import scored_without_overlap, sentence

        read, said = scored_without_overlap(read)
        scored = {score.task for record in read.records for score in record.scores}
        for (task, _), why in said.items():
            if task.lower() == on.lower() and task not in scored:
                raise InputError(f"--on {on}: {why.removeprefix(f'{task}: ')}")
        told = sentence(list(said.values()))
    question = question_of(read, on)
    answer = (
        _two(question, rows[0], rows[1], base_model, equivalence) if rows else _all(question, base_model, equivalence)
    )
    return replace(answer, text=f"{answer.text}\n{one_line(told)}") if told else answer


def _two(question: Question, first: str, second: str, base_model: str, equivalence: float) -> Answer:
    a, b = (row_of(question.comparison.rows, label, base_model) for label in (first, second))
    if a.key == b.key:
        raise InputError(f'"{one_line(a.label)}" is one row: name two')
    block = question.block((a.base_model, b.base_model), (a, b))
    for row in (a, b):
        if row.key not in {one.key for one in block.rows}:
            lacking = (
                "no finished run" if not row.finished else f"no run that kept the examples of {question.target.title}"
            )
            raise InputError(f'row "{one_line(row.label)}" has {lacking}')
    found = block.verdict(a, b, equivalence)
    data = as_json(found, block, equivalence)
    return Answer(one_line(paragraph(found, block, equivalence)), data, [_pair(data)])


def _all(question: Question, base_model: str, equivalence: float) -> Answer:
    comparison, target = question.comparison, question.target
    bases = [base for base in comparison.base_models if not base_model or base_model in (base, base_name(base))]
    found = [(base, block) for base in bases if len((block := question.block((base,))).rows) > 1]
    if not found:
        raise InputError(f"{comparison.name}: no two rows of one base model kept the examples of {target.title}")
    data = [
        {
            "base_model": base,
            "on": target.title,
            "rows": [row.label for row in block.rows],
            "groups": groups_text(block),
            "pairs": [
                as_json(block.verdict(a, b, equivalence), block, equivalence)
                for i, a in enumerate(block.rows)
                for b in block.rows[i + 1 :]
            ],
        }
        for base, block in found
    ]
    lines = [line for base, block in found for line in _told(base, block, target.title)]
    rows = [{"base_model": one["base_model"], **_pair(pair)} for one in data for pair in one["pairs"]]  # type: ignore[arg-type]
    return Answer("\n".join(lines), data, rows)


def _pair(data: dict[str, Any]) -> dict[str, Any]:
    """The numbers of one pair as a line of a frame."""
    means, seeds = data["means"], data["seeds"]
    flat = {key: value for key, value in data.items() if not isinstance(value, list) and key != "text"}
    return {**flat, "mean_a": means[0], "mean_b": means[1], "seeds_a": seeds[0], "seeds_b": seeds[1]}


def _told(base: str, block: Block, title: str) -> list[str]:
    """The matrix of differences and the groups of ties."""
    lines = [["", "", "mean", *(str(i + 1) for i in range(len(block.rows)))], *matrix(block)]
    cells = [[one_line(cell) for cell in line] for line in lines]
    widths = [max(len(line[c]) for line in cells) for c in range(len(cells[0]))]
    said = seen_text(block)
    return [
        one_line(f"{base_name(base)}: {title}; row minus column in points, {len(block.judged)} rows judged"),
        *(
            "  ".join(
                c.ljust(w) if i == 1 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        ),
        _MARKED,
        "not significantly different, best first:",
        *(f"  {one_line(text)}" for text in groups_text(block)),
        *([said] if said else []),
    ]
