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
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from reports.document.blocks import Block
from reports.document.table import EMPTY, Cell, Column, Table, TableRow, number, rank_cells
from reports.explore.examples import Chosen, ExploredTask, choose_differing, choose_hard, read_tasks
from reports.load import RecordedResults, RecordedRow
from reports.read.examples import Examples
from reports.stats import verdicts
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
    longest = max(len(words(text)) for text in texts)
    found = {
        "Length": "up to 8 words"
        if longest <= 8
        else "9 to 16 words"
        if longest <= 16
        else "over 16 words"
    }
    negated = []
    for text in texts:
        negated.append(any(word in _NEGATIONS or word.endswith("n't") for word in words(text)))
    if all(negated):
        found["Negation"] = "with"
    elif any(negated):
        found["Negation"] = "in one text only"
    else:
        found["Negation"] = "without"
    if len(texts) == 2:
        a, b = (set(words(text)) for text in texts)
        share = len(a & b) / max(len(a | b), 1)
        if share < 1 / 3:
            found["Word overlap"] = "below 1/3"
        elif share <= 2 / 3:
            found["Word overlap"] = "1/3 to 2/3"
        else:
            found["Word overlap"] = "above 2/3"
    return found


def slice_masks(task: ExploredTask) -> dict[tuple[str, str], Mask]:
    """(rule, slice) -> (n,) mask of its examples, for the slices of `FEWEST` examples or more that
    can be scored.
    """
    every = [slices_of(texts) if texts else {} for texts in task.known[0]]
    target = task.examples.target
    found = {}
    for rule, name in ((rule, name) for rule, names in _SLICES.items() for name in names):
        mask = np.array([one.get(rule) == name for one in every])
        if mask.sum() >= FEWEST and (np.isnan(target[mask]).all() or np.ptp(target[mask]) > 0):
            found[rule, name] = mask
    return found


def explore(comparison: RecordedResults, significance: Significance) -> list[Block]:
    """The two tables; none if no run stored its examples, or there is one row."""
    if len([row for row in comparison.rows if row.finished]) < 2:
        return []
    pairs_first = sorted(read_tasks(comparison), key=lambda task: task.metric != "spearman")
    able = []
    for task in pairs_first:
        if len(task.rows(comparison)) > 1 and any(task.known[0]):
            able.append(task)
    tasks = list(islice(able, _TASKS))
    tables = [_slice_table(comparison, task) for task in tasks[:1]] + [
        _example_table(comparison, tasks)
    ]
    return [table for table in tables if table is not None]


def _restrict(task: ExploredTask, mask: Mask) -> dict[str, list[Examples]]:
    """Return some examples of a task by the id of the run."""
    found = {}
    for by_id in task.runs.values():
        for run, one in by_id.items():
            part = replace(
                one,
                part=one.part[mask],
                target=one.target[mask],
                outcome=one.outcome[mask],
                texts=one.texts[mask],
            )
            found[run] = [part]
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
        examples = ExampleScores(comparison, examples=_restrict(task, mask))
        judge = Significance(comparison, examples=examples, families=len(masks))
        blocks = [verdicts.Ranking(some, judge, target) for some in comparison.blocks.values()]
        worse = set()
        for block in blocks:
            for row in block.judged:
                if block.not_the_best(row):
                    worse.add(row.key)
        for line, row in zip(cells, rows, strict=True):
            runs = judge.by_seed(row, target)
            ids = task.runs[row.key]
            if runs is None:
                value = None
            else:
                value = number(100 * float(runs.scores.mean()), digits=1, records=ids)
            line.append(replace(value or EMPTY, worse=row.key in worse))
    caption = f"{target.unit}, mean over seeds, on the examples of each slice (their number is below its name)."
    legend = (
        "Compare rows within a slice, not slices: they are not equally hard. Tests are corrected for all rows and for "
        f"the {len(masks)} slices."
    )
    body = rank_cells(
        columns, [TableRow(tuple(c), block_of(r)) for c, r in zip(cells, rows, strict=True)]
    )
    if masks:
        return Table(
            "slices",
            f"Scores by slice of {task.task}",
            caption,
            tuple(columns),
            body,
            (legend,),
        )
    return None


def _example_table(comparison: RecordedResults, tasks: Sequence[ExploredTask]) -> Table | None:
    """Of each of the first tasks the examples that most rows get wrong, and those on which its two
    best rows differ.
    """
    lines = []
    for task in (one for one in tasks if comparison.show_texts or one.source == _OWN_SOURCE):
        rows = task.rows(comparison)
        rows = sorted(rows, key=lambda row: float(task.errors[row.key].mean()))
        lines += [
            _line(task, one, rows, "most rows are wrong")
            for one in choose_hard(task, rows, _EXAMPLES)
        ]
        differing = choose_differing(task, rows[0], rows[1], _EXAMPLES)
        lines += [_line(task, one, rows, "the two best rows differ") for one in differing]
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
    shown = " | ".join(
        text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in one.texts
    ) or ", ".join(one.ids)
    errors = []
    for row in rows:
        errors.append(float(task.errors[row.key][one.example - 1]))
    cells = []
    for value in (errors[0], errors[1], float(np.median(errors))):
        cells.append(number(value, digits=2))
    best = rows[0].label
    second = rows[1].label
    return TableRow(
        (Cell(shown), Cell(why), Cell(one.gold), *cells),
        f"{task.task} (best: {best}, then {second})",
    )
