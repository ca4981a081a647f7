"""`harness verdict`, `power` and `examples`: which row is better, how many seeds show it, and where rows differ."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_json, tell_lines

if TYPE_CHECKING:
    from harness.results.answer import Answer
    from reports.explore.examples import Chosen

_SHARED = ("on", "block", "comparison")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness verdict`, `power` and `examples`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "verdict",
        help="say which of two rows is better and how sure that is; or all pairs of rows",
        description="From the records of a work directory: better, worse, no difference that matters or cannot tell "
        "yet, with an interval over seeds and examples. It is corrected for the family that the pair belongs to: the "
        "planned pairs, the rows against their untrained start, or all pairs. Without A and B: a matrix of all "
        "differences, the rows that may be the best, and groups of rows that are not significantly different.",
        epilog="example: harness verdict work/demo SimCSE SCD --on STS",
    )
    parser.add_argument("workdir", type=Path, metavar="WORKDIR")
    parser.add_argument("rows", nargs="*", metavar="A B", help="labels of two rows")
    _add_shared(parser)
    parser.add_argument("--base-model", default="", metavar="MODEL", help="where a row has several")
    parser.add_argument(
        "--equivalence", type=float, default=0.5, metavar="POINTS", help="less is no difference that matters (0.5)"
    )
    parser.add_argument(
        "--without-overlap", action="store_true",
        help="leave out test examples that occur in the training data of a row",
    )  # fmt: skip
    parser.set_defaults(run=run_verdict)

    parser = subparsers.add_parser(
        "power",
        help="say what differences a number of seeds can see, and how many seeds a difference takes",
        description="Plays the verdicts of `harness verdict` through on drawn scores, with the spread of seeds and "
        "examples that the records of a work directory show, or with given ones. Prints the smallest difference that "
        "is found in 80 % of comparisons, by the number of seeds and of test examples.",
        epilog="example: harness power work/demo --difference 1.5; harness power --sd 0.84 --rows 6 --difference 2",
    )
    parser.add_argument("workdir", type=Path, nargs="?", metavar="WORKDIR")
    parser.add_argument("--difference", type=float, metavar="POINTS", help="how many seeds does this one take?")
    _add_shared(parser)
    parser.add_argument("--sd", type=float, metavar="POINTS", help="standard deviation over seeds (else: the records')")
    parser.add_argument("--pairs-sd", type=float, metavar="POINTS", help="standard deviation of a difference by the "
                        "choice of test pairs (else: the records', or 0.7)")  # fmt: skip
    parser.add_argument("--rows", type=int, metavar="K", help="rows that are compared (else: the records', or 2)")
    parser.set_defaults(run=run_power)

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
    parser.set_defaults(run=run_examples)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--on", default="", metavar="STS|TASK|SUITE|BLOCK",
                        help="what to compare by, as STS, MR, transfer (default: as the report does)")  # fmt: skip
    parser.add_argument("--block", default="", metavar="NAME", help="one block of the file, on what it asks for")
    parser.add_argument("--comparison", default="", metavar="NAME", help="where a work directory holds several")
    parser.add_argument("--json", action="store_true", help="machine-readable")


def run_verdict(args: argparse.Namespace) -> int:
    """Print the verdict."""
    from reports.decide.verdict_answer import verdict

    if len(args.rows) not in (0, 2):
        raise InputError("harness verdict WORKDIR A B: name two rows, or none for all pairs")
    options = (*_SHARED, "base_model", "equivalence", "without_overlap")
    return _show(args, verdict(args.workdir, *args.rows, **{name: getattr(args, name) for name in options}))


def run_power(args: argparse.Namespace) -> int:
    """Print the table of seeds and differences for each base model."""
    from reports.decide.power_answer import power

    options = (*_SHARED, "difference", "sd", "pairs_sd", "rows")
    return _show(args, power(args.workdir, **{name: getattr(args, name) for name in options}))


def _show(args: argparse.Namespace, answer: Answer) -> int:
    if args.json:
        tell_json(answer.data)
    else:
        tell_lines(answer.text)
    return 0


def run_examples(args: argparse.Namespace) -> int:
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
        _print_examples(found, bool(rows), reasons)
    return 0


def _print_examples(found: list[Chosen], two: bool, reasons: dict[str, str]) -> None:
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
