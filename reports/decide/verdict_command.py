"""`harness verdict`: is A better than B, in a paragraph; without A and B, all pairs of rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_json

if TYPE_CHECKING:
    from reports.decide.question import Question


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness verdict`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "verdict",
        help="say which of two rows is better and how sure that is; or all pairs of rows",
        description="From the records of a work directory: better, worse, no difference that matters or cannot tell "
        "yet, with an interval over seeds and examples that is corrected for all pairs of rows. Without A and B: a "
        "matrix of all differences, and groups of rows that cannot be told apart.",
        epilog="example: harness verdict work/demo SimCSE SCD --on STS",
    )
    parser.add_argument("workdir", type=Path, metavar="WORKDIR")
    parser.add_argument("rows", nargs="*", metavar="A B", help="labels of two rows")
    parser.add_argument("--on", default="", metavar="STS|TASK|SUITE|BLOCK",
                        help="what to compare by, as STS, MR, transfer (default: as the report does)")  # fmt: skip
    parser.add_argument("--block", default="", metavar="NAME", help="one block of the file, on what it asks for")
    parser.add_argument("--comparison", default="", metavar="NAME", help="where a work directory holds several")
    parser.add_argument("--base-model", default="", metavar="MODEL", help="where a row stands on several")
    parser.add_argument(
        "--equivalence", type=float, default=0.5, metavar="POINTS", help="less is no difference that matters (0.5)"
    )
    parser.add_argument(
        "--without-overlap", action="store_true",
        help="leave out the examples of which a text stood in the training text of a row",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the verdict."""
    from reports.decide.question import comparison_of, question_of

    if len(args.rows) not in (0, 2):
        raise InputError("harness verdict WORKDIR A B: name two rows, or none for all pairs")
    if args.equivalence < 0:
        raise InputError(f"--equivalence {args.equivalence:g}: a number of points, 0 or more")
    comparison = comparison_of(args.workdir, args.comparison, args.block)
    if args.without_overlap:
        from reports.read.without_overlap import without_overlap

        comparison = without_overlap(comparison)
    question = question_of(comparison, args.on)
    return _two(args, question) if args.rows else _all(args, question)


def _two(args: argparse.Namespace, question: Question) -> int:
    from reports.decide.question import row_of
    from reports.decide.words import as_json, paragraph

    a, b = (row_of(question.comparison.rows, label, args.base_model) for label in args.rows)
    if a.key == b.key:
        raise InputError(f'"{one_line(a.label)}" is one row: name two')
    block = question.block((a.base_model, b.base_model), (a, b))
    for row in (a, b):
        if row.key not in {one.key for one in block.rows}:
            lacking = (
                "no finished run" if not row.finished else f"no run that kept the examples of {question.target.title}"
            )
            raise InputError(f'row "{one_line(row.label)}" has {lacking}')
    verdict = block.verdict(a, b, args.equivalence)
    if args.json:
        tell_json(as_json(verdict, block, args.equivalence))
    else:
        tell(one_line(paragraph(verdict, block, args.equivalence)))
    return 0


def _all(args: argparse.Namespace, question: Question) -> int:
    from reports.decide.words import as_json, groups_text, matrix
    from reports.read.comparison_runs import base_name
    from reports.stats.verdicts import seen_text

    found = []
    comparison, target = question.comparison, question.target
    for base in comparison.base_models:
        if args.base_model and args.base_model not in (base, base_name(base)):
            continue
        block = question.block((base,))
        if len(block.rows) > 1:
            found.append((base, block))
    if not found:
        raise InputError(f"{comparison.name}: no two rows of one base model kept the examples of {target.title}")
    if args.json:
        tell_json(
            [
                {
                    "base_model": base,
                    "on": target.title,
                    "rows": [row.label for row in block.rows],
                    "groups": groups_text(block),
                    "pairs": [
                        as_json(block.verdict(a, b, args.equivalence), block, args.equivalence)
                        for i, a in enumerate(block.rows)
                        for b in block.rows[i + 1 :]
                    ],
                }
                for base, block in found
            ]
        )
        return 0
    for base, block in found:
        tell(
            one_line(f"{base_name(base)}: {target.title}; row minus column in points, {len(block.judged)} rows judged")
        )
        lines = [["", "", "mean", *(str(i + 1) for i in range(len(block.rows)))], *matrix(block)]
        widths = [max(len(one_line(line[c])) for line in lines) for c in range(len(lines[0]))]
        for line in lines:
            cells = [
                one_line(c).ljust(w) if i == 1 else one_line(c).rjust(w)
                for i, (c, w) in enumerate(zip(line, widths, strict=True))
            ]
            tell("  ".join(cells).rstrip())
        tell(
            "* more than chance (0.05, corrected for all pairs); = not separable, may be chance; ? one seed, not judged"
        )
        tell("cannot be told apart, best first:")
        for text in groups_text(block):
            tell(f"  {one_line(text)}")
        if said := seen_text(block):
            tell(said)
    return 0
