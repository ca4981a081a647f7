"""`harness examples`: the examples on which two rows differ most, or that most rows get wrong."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_json

if TYPE_CHECKING:
    from reports.explore.examples import Chosen


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness examples`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "examples",
        help="show the examples on which two rows differ most, or that most rows get wrong",
        description="Compares the errors of rows on single examples: of a pair, the distance between its rank by "
        "cosine and its rank by gold score; of a classified text, right or wrong; of a query, its score. Texts are "
        "read from the data of the tasks; if it cannot be read, their ids are printed.",
        epilog="example: harness examples work/demo SimCSE SCD --task Embedded-STS-natural",
    )
    parser.add_argument("workdir", type=Path, metavar="WORKDIR")
    parser.add_argument("rows", nargs="*", metavar="A B", help="labels of two rows (default: what most rows get wrong)")
    parser.add_argument("--task", action="append", default=[], metavar="NAME", help="may be repeated (default: all)")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="examples per task (default: 10)")
    parser.add_argument("--text", default="", metavar="WORDS", help="only examples that contain these words")
    parser.add_argument("--comparison", default="", metavar="NAME", help="if the work directory holds several")
    parser.add_argument("--base-model", default="", metavar="MODEL", help="if a row has several")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the examples."""
    from reports.decide.question import comparison_of, row_of
    from reports.explore.examples import choose_differing, choose_hard, read_tasks

    if len(args.rows) not in (0, 2):
        raise InputError("harness examples WORKDIR A B: name two rows, or none for what most rows get wrong")
    if args.top < 1:
        raise InputError(f"--top {args.top}: a number of examples, 1 or more")
    comparison = comparison_of(args.workdir, args.comparison)
    rows = [row_of(comparison.rows, label, args.base_model) for label in args.rows]
    if rows and rows[0].key == rows[1].key:
        raise InputError(f'"{one_line(rows[0].label)}" is one row: name two')
    every = read_tasks(comparison, lambda task: not args.task or task in args.task)
    tasks = [task for task in every if all(row.key in task.runs for row in rows)]
    known = sorted({s.task for record in comparison.records for s in record.scores})
    for name in (name for name in args.task if name not in {task.task for task in tasks}):
        raise InputError(f"--task {name}: no run of these rows stored its examples{nearest(name, known)}")
    if not tasks:
        raise InputError(f"{comparison.name}: no run stored examples")
    found: list[Chosen] = []
    for task in tasks:
        if rows:
            found += choose_differing(task, rows[0], rows[1], args.top, args.text)
        elif some := task.rows(comparison, args.base_model):
            found += choose_hard(task, some, args.top, args.text)
    reasons = {task.task: why for task in tasks if (why := task.known[2])}
    if args.json:
        tell_json({"examples": [asdict(one) for one in found], "without_texts": reasons})
    else:
        _print(found, bool(rows), reasons)
    return 0


def _print(found: list[Chosen], two: bool, reasons: dict[str, str]) -> None:
    before = ""
    for one in found:
        if one.task != before:
            before = one.task
            tell(one_line(f"{one.task} ({one.source})"))
            if one.task in reasons:
                tell("  " + one_line(f"no texts: {reasons[one.task]}"))
        sides = [f"{row} {score:.3f} (error {one.errors[row]:.2f})" for row, score in one.scores.items()]
        said = "; ".join(sides) if two else f"median error of {len(sides)} rows {one.by:.2f}"
        tell("  " + one_line(f"{one.example}: {f'gold {one.gold}, ' if one.gold else ''}{said}"))
        for text in one.texts or [f"[{', '.join(one.ids)}]"]:
            tell("      " + one_line(text))
    if not found:
        tell("no example found")
