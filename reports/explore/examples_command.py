"""`harness examples`: which pairs does one row get right and another wrong?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_json

if TYPE_CHECKING:
    from reports.explore.chosen import Filters, Shown
    from reports.explore.examples import ExploredTask
    from reports.read.comparison_runs import Comparison, ResultRow

_OF_TEXTS = {"negation": "a negation", "numbers": "a number", "names": "a name"}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness examples`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "examples",
        help="show the examples on which two rows differ most, or that most rows get wrong",
        description="From what the runs of a work directory kept of every example: pairs by how far their place by "
        "cosine is from their place by gold score, classified texts by right or wrong, queries by their score. Texts "
        "are read from the data of the tasks; where that cannot be had, ids stand in their place.",
        epilog="example: harness examples work/demo SimCSE SCD --task Embedded-STS-natural --negation",
    )
    parser.add_argument("workdir", type=Path, metavar="WORKDIR")
    parser.add_argument("rows", nargs="*", metavar="A B", help="labels of two rows (default: what most rows get wrong)")
    parser.add_argument("--task", action="append", default=[], metavar="NAME", help="may be repeated (default: all)")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="of each task (default: 10)")
    parser.add_argument("--gold", default="", metavar="LOW:HIGH", help="gold scores of a range, as 4:5")
    parser.add_argument("--length", default="", metavar="LOW:HIGH", help="words of the longer text, as 9:16")
    parser.add_argument("--overlap", default="", metavar="LOW:HIGH", help="share of common words, as 0:0.3")
    for name, what in _OF_TEXTS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"a text has {what}")
    parser.add_argument("--text", default="", metavar="WORDS", help="a text holds these words")
    parser.add_argument("--comparison", default="", metavar="NAME", help="where a work directory holds several")
    parser.add_argument("--base-model", default="", metavar="MODEL", help="where a row stands on several")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="machine-readable")
    form.add_argument("--csv", action="store_true", help="a line an example")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the examples."""
    from reports.decide.question import comparison_of
    from reports.explore.chosen import differing, hard
    from reports.explore.examples import rows_of
    from reports.read.comparison_runs import base_name

    if len(args.rows) not in (0, 2):
        raise InputError("harness examples WORKDIR A B: name two rows, or none for what most rows get wrong")
    if args.top < 1:
        raise InputError(f"--top {args.top}: a number of examples, 1 or more")
    filters = _filters(args)
    comparison = comparison_of(args.workdir, args.comparison)
    rows = _rows(comparison, args)
    tasks = _tasks(comparison, args.task, rows)
    found: list[Shown] = []
    reasons = {}
    for task in tasks:
        if rows:
            found += differing(task, rows[0], rows[1], filters, args.top)
        else:
            base = args.base_model
            every = [r for r in rows_of(comparison, task) if base in ("", r.base_model, base_name(r.base_model))]
            found += hard(task, every, filters, args.top) if every else []
        if task.known.why:
            reasons[task.task] = task.known.why
    if args.json:
        tell_json({"examples": [one.plain() for one in found], "texts_lacking": reasons})
    elif args.csv:
        _as_csv(found, rows)
    else:
        _as_text(found, rows, reasons)
    return 0


def _filters(args: argparse.Namespace) -> Filters:
    from reports.explore.chosen import Filters

    ranges = {name: _range(name, getattr(args, name)) for name in ("gold", "length", "overlap")}
    traits = {name: frozenset((1, 2)) for name in _OF_TEXTS if getattr(args, name)}  # 0: in no text
    return Filters(**ranges, traits=traits, text=args.text)


def _range(name: str, text: str) -> tuple[float, float] | None:
    if not text:
        return None
    low, colon, high = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return float(low or "-inf"), float(high or "inf")
    except ValueError:
        raise InputError(f"--{name} {text}: expected LOW:HIGH, two numbers of which one may be left out") from None


def _rows(comparison: Comparison, args: argparse.Namespace) -> list[ResultRow]:
    from reports.decide.question import row_of

    rows = [row_of(comparison.rows, label, args.base_model) for label in args.rows]
    if rows and rows[0].key == rows[1].key:
        raise InputError(f'"{one_line(rows[0].label)}" is one row: name two')
    return rows


def _tasks(comparison: Comparison, names: list[str], rows: list[ResultRow]) -> list[ExploredTask]:
    """The tasks asked for.

    Raises:
        InputError: no run kept the examples of one of them.
    """
    from reports.explore.examples import explored_tasks

    asked = (lambda task, source: task in names) if names else None
    tasks = [task for task in explored_tasks(comparison, asked) if all(row.key in task.runs for row in rows)]
    for name in names:
        if all(task.task != name for task in tasks):
            known = sorted({s.task for record in comparison.records for s in record.scores})
            labels = " and ".join(one_line(row.label) for row in rows)
            whose = f"no runs of {labels} kept its examples" if rows else "no run kept its examples"
            raise InputError(f"--task {name}: {whose}{nearest(name, known)}")
    if not tasks:
        raise InputError(
            f"{comparison.name}: no run kept what each example scored; `harness compare --rescore outcomes` scores "
            "runs of before for them"
        )
    return tasks


def _as_csv(found: list[Shown], rows: list[ResultRow]) -> None:
    import csv
    import io

    from reports.write.markdown import csv_text

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    sides = [f"{what} {row.label}" for row in rows for what in ("score", "error")]
    writer.writerow([csv_text(one) for one in ("task", "example", "gold", "by", *sides, "text 1", "text 2", "ids")])
    for one in found:
        scores = [n for pair in zip(one.scores, one.errors, strict=True) for n in pair] if rows else []
        texts = [csv_text(one_line(text)) for text in (*one.texts, "", "")[:2]]
        writer.writerow(
            [csv_text(one.task), one.number, csv_text(one.gold), one.by, *scores, *texts, " ".join(one.ids)]
        )
    for line in out.getvalue().splitlines():
        tell(line)


def _as_text(found: list[Shown], rows: list[ResultRow], reasons: dict[str, str]) -> None:
    before = ""
    for one in found:
        if one.task != before:
            before = one.task
            tell(one_line(f"{one.task} ({one.source})"))
            if one.task in reasons:
                tell("  " + one_line(f"texts: {reasons[one.task]}"))
        gold = f"gold {one.gold}, " if one.gold else ""
        if rows:
            sides = zip(rows, one.scores, one.errors, strict=True)
            said = "; ".join(f"{row.label} {score:.3f} (error {wrong:.2f})" for row, score, wrong in sides)
        else:
            said = f"median error of {len(one.errors)} rows {one.by:.2f}"
        tell("  " + one_line(f"{one.number}: {gold}{said}"))
        for text in one.texts or [f"[{', '.join(one.ids) or 'no ids kept'}]"]:
            tell("      " + one_line(text))
    if not found:
        tell("no example passes: fewer conditions, or another task")
