"""The section of a comparison's report on single examples: scores by slice of one task, and a table
of examples.

Slices are cut by simple rules on words (runs of letters, digits and apostrophes, in lower case).
The rules are for English, know no syntax and err at times; they are the same for all rows, so that
rows can be compared within a slice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reports.document.blocks import Block
from reports.document.table import EMPTY, Cell, Column, Table, TableRow, number, rank_cells
from reports.explore.examples import Chosen, ExploredTask, choose_differing, choose_hard, read_tasks
from reports.load import RecordedResults, RecordedRow
from reports.read.examples import Examples
from reports.stats import verdicts
from reports.stats.estimate import Floats
from reports.stats.example_scores import ExampleScores
from reports.stats.significance import Significance
from reports.tables.score_cells import HEAD, block_of, name_cell
from reports.targets import Measure, Target

FEWEST = 30  # examples of a slice that gets a score
# tasks in the table of examples, examples of each kind, characters of a text
_TASKS = 4
_EXAMPLES = 3
_SHOWN = 160
_OWN_SOURCE = "embedded"  # the source whose texts were written for this project, and may be copied into a report
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NEGATIONS = {
    "not",
    "no",
    "never",
    "none",
    "nobody",
    "nothing",
    "nowhere",
    "neither",
    "nor",
    "cannot",
    "without",
    "nt",
}
_SLICES = {
    "Length": ("up to 8 words", "9 to 16 words", "over 16 words"),
    "Word overlap": ("below 1/3", "1/3 to 2/3", "above 2/3"),
    "Negation": ("without", "with", "in one text only"),
}
Mask = NDArray[np.bool_]


def words(text: str) -> list[str]:
    """The words of a text in lower case, in order."""
    return [word.replace("’", "'").casefold() for word in _WORD.findall(text)]


def slices_of(texts: Sequence[str]) -> dict[str, str]:
    """The slice of an example by each rule: the length of its longer text, word overlap (Jaccard)
    and negation.
    """
    found = {}
    longest = max(len(words(text)) for text in texts)
    if longest <= 8:
        found["Length"] = "up to 8 words"
    elif longest <= 16:
        found["Length"] = "9 to 16 words"
    else:
        found["Length"] = "over 16 words"
    negated = [_is_negated(text) for text in texts]
    if all(negated):
        found["Negation"] = "with"
    elif any(negated):
        found["Negation"] = "in one text only"
    else:
        found["Negation"] = "without"
    if len(texts) == 2:
        a = set(words(texts[0]))
        b = set(words(texts[1]))
        share = len(a & b) / max(len(a | b), 1)
        if share < 1 / 3:
            found["Word overlap"] = "below 1/3"
        elif share <= 2 / 3:
            found["Word overlap"] = "1/3 to 2/3"
        else:
            found["Word overlap"] = "above 2/3"
    return found


def _is_negated(text: str) -> bool:
    """True if a word of the text is a negation."""
    return any(word in _NEGATIONS or word.endswith("n't") for word in words(text))


def slice_masks(task: ExploredTask) -> dict[tuple[str, str], Mask]:
    """(rule, slice) -> (n,) mask of its examples, for the slices of `FEWEST` examples or more that
    can be scored.
    """
    every_texts, *_ = task.known
    every = [slices_of(texts) if texts else {} for texts in every_texts]
    found = {}
    for rule, names in _SLICES.items():
        for name in names:
            mask = np.array([one.get(rule) == name for one in every])
            if mask.sum() >= FEWEST and _can_be_scored(task.examples.target[mask]):
                found[rule, name] = mask
    return found


def _can_be_scored(target: Floats) -> bool:
    """True if there are no gold scores, or unlike ones."""
    return bool(np.isnan(target).all() or np.ptp(target) > 0)


def explore(comparison: RecordedResults, significance: Significance) -> list[Block]:
    """The two tables; none if no run stored its examples, or there is one row."""
    if len([row for row in comparison.rows if row.finished]) < 2:
        return []
    pairs_first = sorted(read_tasks(comparison), key=lambda task: task.metric != "spearman")
    tasks: list[ExploredTask] = []
    for task in pairs_first:
        texts, *_ = task.known
        if len(tasks) < _TASKS and len(task.rows(comparison)) > 1 and any(texts):
            tasks.append(task)
    tables = [_slice_table(comparison, task) for task in tasks[:1]]
    tables.append(_example_table(comparison, tasks))
    return [table for table in tables if table is not None]


def _restrict(task: ExploredTask, mask: Mask) -> dict[str, list[Examples]]:
    """Return some examples of a task by the id of the run."""
    every = task.examples
    shared = replace(
        every,
        part=every.part[mask],
        target=every.target[mask],
        texts=every.texts[mask],
    )
    found = {}
    for by_id in task.runs.values():
        for run, one in by_id.items():
            found[run] = [replace(shared, outcome=one.outcome[mask])]
    return found


def _slice_table(comparison: RecordedResults, task: ExploredTask) -> Table | None:
    """Scores of all rows within the slices of one task."""
    rows = task.rows(comparison)
    masks = slice_masks(task)
    measure = Measure(task.task, task.source, task.metric, split=task.examples.score[2])
    target = Target(task.task, task.task, task.task, (measure,))
    columns = [HEAD[0]]
    cells = [[name_cell(row)] for row in rows]
    for (rule, name), mask in masks.items():
        columns.append(
            Column(
                f"{rule}-{name}",
                name,
                f"{mask.sum():,}",
                group=rule,
                better="higher",
            )
        )
        found = _score_slice(comparison, task, target, mask, slices=len(masks))
        for line, cell in zip(cells, found, strict=True):
            line.append(cell)
    if not masks:
        return None
    caption = (
        f"{target.unit}, mean over seeds, on the examples of each slice (their number is below "
        "its name)."
    )
    legend = (
        "Compare rows within a slice, not slices: they are not equally hard. Tests are "
        f"corrected for all rows and for the {len(masks)} slices."
    )
    lines = []
    for line, row in zip(cells, rows, strict=True):
        lines.append(TableRow(tuple(line), block_of(row)))
    return Table(
        "slices",
        f"Scores by slice of {task.task}",
        caption,
        tuple(columns),
        rank_cells(columns, lines),
        (legend,),
    )


def _score_slice(
    comparison: RecordedResults, task: ExploredTask, target: Target, mask: Mask, slices: int
) -> list[Cell]:
    """Return the cell of each row that has the task: its score on some of the examples."""
    examples = ExampleScores(comparison, examples=_restrict(task, mask))
    judge = Significance(comparison, examples=examples, families=slices)
    blocks = [verdicts.Ranking(some, judge, target) for some in comparison.blocks.values()]
    worse = set()
    for block in blocks:
        for row in block.judged:
            if block.not_the_best(row):
                worse.add(row.key)
    cells = []
    for row in task.rows(comparison):
        runs = judge.by_seed(row, target)
        cell = EMPTY
        if runs is not None:
            mean = 100 * float(runs.scores.mean())
            cell = number(mean, digits=1, records=task.runs[row.key])
        cells.append(replace(cell, worse=row.key in worse))
    return cells


def _example_table(comparison: RecordedResults, tasks: Sequence[ExploredTask]) -> Table | None:
    """Of each of the first tasks the examples that most rows get wrong, and those on which its two
    best rows differ.
    """
    lines = []
    for task in tasks:
        if not comparison.show_texts and task.source != _OWN_SOURCE:
            continue
        means = {key: float(errors.mean()) for key, errors in task.errors.items()}
        rows = sorted(task.rows(comparison), key=lambda row: means[row.key])
        for one in choose_hard(task, rows, _EXAMPLES):
            lines.append(_line(task, one, rows, "most rows are wrong"))
        for one in choose_differing(task, rows[0], rows[1], _EXAMPLES):
            lines.append(_line(task, one, rows, "the two best rows differ"))
    if not lines:
        return None
    heads = {
        "example": "Example",
        "why": "Chosen because",
        "gold": "Gold",
        "best": "Error, best",
        "second": "Error, second",
        "median": "Error, median",
    }
    found = []
    for key, title in heads.items():
        found.append(Column(key, title, numeric=key not in ("example", "why")))
    columns = tuple(found)
    caption = (
        f"Of each task the {_EXAMPLES} examples with the largest median error, and the {_EXAMPLES} on which the two "
        "rows with the smallest mean error differ most; harness examples prints more."
    )
    legend = (
        "Error of a pair: distance between its ranks by cosine and by gold score, as a share of all ranks; of a "
        "classified text: share of seeds that are wrong; of a query: 1 minus its score. Texts of other data sets are "
        "left out, since licences may forbid copies."
    )
    return Table(
        "examples", "Hard and contested examples", caption, columns, tuple(lines), (legend,)
    )


def _line(task: ExploredTask, one: Chosen, rows: Sequence[RecordedRow], why: str) -> TableRow:
    texts = []
    for text in one.texts:
        texts.append(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
    shown = " | ".join(texts) or ", ".join(one.ids)
    place = one.example - 1
    errors = [float(task.errors[row.key][place]) for row in rows]
    cells = []
    for value in (errors[0], errors[1], float(np.median(errors))):
        cells.append(number(value, digits=2))
    best = rows[0].label
    second = rows[1].label
    return TableRow(
        (Cell(shown), Cell(why), Cell(one.gold), *cells),
        f"{task.task} (best: {best}, then {second})",
    )
