"""Which share of each task's texts stands in what rows were trained or selected on."""

from __future__ import annotations

from harness.results.overlaps import TaskOverlap
from reports.document.blocks import Block, Text
from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import Comparison, base_name
from reports.read.overlaps import TRAINING, TextOverlap, checked, data_of, text_overlaps

LARGE = 0.05  # of a task's texts: said among the limits
_NOT_SCORED = ("geometry", "layers", "efficiency")
_ROWS_NAMED = 4


def tasks_of(comparison: Comparison) -> list[tuple[str, str]]:
    """(task, source) of everything that is scored by its texts, as first met."""
    met = ((s.task, s.source) for r in comparison.records for s in r.scores if s.suite not in _NOT_SCORED)
    return [key for key in dict.fromkeys(met) if not key[0].startswith("geometry:")]


def contamination(comparison: Comparison) -> list[Block]:
    """The table of overlaps with more than nothing, and what it does not know."""
    texts = text_overlaps(comparison)
    lines: list[TableRow] = []
    said: list[str] = []
    unknown: dict[str, list[str]] = {}
    clean: dict[str, list[str]] = {}
    for task, source in tasks_of(comparison):
        known = checked(texts, task, source, data_of(comparison, task, source))
        for text, one in known:
            if one.equal + one.near:
                lines.append(_line(text, task, one))
            else:
                clean.setdefault(f"{text.name} ({text.use})", []).append(task)
        for text in texts:
            if text not in [t for t, _ in known]:
                unknown.setdefault(f"{text.name} ({text.use})", []).append(task)
    said += [f"None of the texts of {_some(tasks)} is in {text}." for text, tasks in clean.items()]
    said += [
        f"Not checked against {text}: {_some(tasks)}; harness compare with the same experiment checks tasks whose "
        "texts are known before they are scored."
        for text, tasks in unknown.items()
    ]
    said += _unknown_text(comparison)
    if not lines:
        return [Text(tuple(said), bullets=True)] if texts else []
    lines.sort(key=lambda line: -(line.cells[3].value or 0))
    lines = [
        line for text in sorted(texts, key=lambda t: t.use != TRAINING) for line in lines if line.block == _head(text)
    ]
    table = Table(
        "contamination",
        "Texts of the tasks in the training text",
        "Distinct texts of each task that stand in what rows were trained or selected on: word for word (whatever "
        "case, punctuation and white space), or nearly (by shared word n-grams), and the scored pairs or other "
        "examples that have such a text.",
        (
            Column("task", "Task", numeric=False),
            Column("texts", "Texts"),
            Column("equal", "Equal", "%"),
            Column("all", "Equal or nearly", "%"),
            Column("pairs", "Examples with one", "%"),
        ),
        tuple(lines),
        (
            "The whole text is checked that was offered: a run of few updates may have seen a part of it. Scores "
            "without such examples: harness report build --without-overlap, harness verdict --without-overlap.",
        ),
    )
    return [table, Text(tuple(said), bullets=True)] if said else [table]


def _head(text: TextOverlap) -> str:
    rows = ", ".join(text.rows[:_ROWS_NAMED])
    more = f" and {len(text.rows) - _ROWS_NAMED} more" if len(text.rows) > _ROWS_NAMED else ""
    use = "training text" if text.use == TRAINING else "dev set"
    return f"{text.name}, {use} of {rows}{more}"


def _line(text: TextOverlap, task: str, one: TaskOverlap) -> TableRow:
    pairs = _percent(one.touched_share) if one.pairs else Cell("–", state="empty")
    texts = Cell(f"{one.texts:,}", value=one.texts)
    cells = (Cell(task), texts, _percent(one.equal / one.texts), _percent(one.share), pairs)
    return TableRow(cells, block=_head(text))


def _percent(share: float) -> Cell:
    """A share, never rounded to all or nothing."""
    shown = f"{100 * share:.1f}"
    if shown == "100.0":
        shown = "100" if share == 1 else "> 99.9"
    if shown == "0.0" and share:
        shown = "< 0.1"
    return Cell(shown, value=100 * share, state="value")


def _unknown_text(comparison: Comparison) -> list[str]:
    """What nobody here can check."""
    bases = ", ".join(base_name(base) for base in comparison.base_models)
    said = [f"Of the text that base models ({bases}) were pretrained on nothing is known here, nor was it checked."]
    elsewhere = [row.label for row in comparison.rows if row.supervision == "supervised" and not row.records[0].corpus]
    if elsewhere:
        said.append(f"Trained elsewhere, on text that is not known here: {_some(elsewhere)}.")
    own = [row.label for row in comparison.rows if row.supervision == "transductive"]
    if own:
        said.append(f"Fitted to the sentences of each task, all of which they have so seen: {_some(own)}.")
    return said


def _some(names: list[str], most: int = 12) -> str:
    names = list(dict.fromkeys(names))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def remarks(comparison: Comparison) -> list[str]:
    """A sentence for each training text in which much of the tasks' text stands."""
    texts = text_overlaps(comparison)
    much: dict[str, list[tuple[float, str]]] = {}
    for task, source in tasks_of(comparison):
        for text, one in checked(texts, task, source, data_of(comparison, task, source)):
            if text.use == TRAINING and one.share >= LARGE:
                much.setdefault(text.name, []).append((one.share, task))
    return [
        f"Sentences of the tests stood in the training text {name}: "
        + ", ".join(f"{task} {_percent(share).text} %" for share, task in sorted(found, key=lambda f: -f[0]))
        + ". Scores without them: --without-overlap."
        for name, found in much.items()
    ]
