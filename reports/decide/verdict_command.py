"""`harness verdict`: is A better than B, in a paragraph; without A and B, all pairs of rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_json


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness verdict`. Imports nothing slow."""
    parser = subparsers.add_parser(
        "verdict",
        help="say which of two rows is better and how sure that is; or all pairs of rows",
        description="From the records of a work directory: better, worse, no difference that matters or cannot tell "
        "yet, with an interval over seeds and pairs that is corrected for all pairs of rows. Without A and B: a matrix "
        "of all differences, and groups of rows that cannot be told apart.",
        epilog="example: harness verdict work/demo SimCSE SCD --on STS",
    )
    parser.add_argument("workdir", type=Path, metavar="WORKDIR")
    parser.add_argument("rows", nargs="*", metavar="A B", help="labels of two rows")
    parser.add_argument("--on", default="", metavar="STS|TASK", help="what to compare by (default: as the report does)")
    parser.add_argument("--comparison", default="", metavar="NAME", help="where a work directory holds several")
    parser.add_argument("--base-model", default="", metavar="MODEL", help="where a row stands on several")
    parser.add_argument(
        "--equivalence", type=float, default=0.5, metavar="POINTS", help="less is no difference that matters (0.5)"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the verdict."""
    from reports.decide.question import comparison_of, target_of

    if len(args.rows) not in (0, 2):
        raise InputError("harness verdict WORKDIR A B: name two rows, or none for all pairs")
    if args.equivalence < 0:
        raise InputError(f"--equivalence {args.equivalence:g}: a number of points, 0 or more")
    comparison = comparison_of(args.workdir, args.comparison)
    target = target_of(comparison, args.on)
    return _two(args, comparison, target) if args.rows else _all(args, comparison, target)


def _two(args: argparse.Namespace, comparison: Any, target: Any) -> int:
    from reports.decide.question import block_of, row_of
    from reports.decide.words import as_json, paragraph

    a, b = (row_of(comparison.rows, label, args.base_model) for label in args.rows)
    if a.key == b.key:
        raise InputError(f'"{one_line(a.label)}" is one row: name two')
    block = block_of(comparison, target, (a.base_model, b.base_model), (a, b))
    for row in (a, b):
        if row.key not in {one.key for one in block.rows}:
            lacking = "no finished run" if not row.finished else f"no run with stored pairs of {target.title}"
            raise InputError(f'row "{one_line(row.label)}" has {lacking}')
    verdict = block.verdict(a, b, args.equivalence)
    if args.json:
        tell_json(as_json(verdict, block, args.equivalence))
    else:
        tell(one_line(paragraph(verdict, block, args.equivalence)))
    return 0


def _all(args: argparse.Namespace, comparison: Any, target: Any) -> int:
    from reports.decide.question import block_of
    from reports.decide.words import as_json, groups_text, matrix
    from reports.read.comparison_runs import base_name
    from reports.stats.verdicts import seen_text

    found = []
    for base in comparison.base_models:
        if args.base_model and args.base_model not in (base, base_name(base)):
            continue
        block = block_of(comparison, target, (base,))
        if len(block.rows) > 1:
            found.append((base, block))
    if not found:
        raise InputError(f"{comparison.name}: no two rows of one base model have stored pairs of {target.title}")
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
        tell("* separated at 0.05, corrected for all pairs; = not separable; ? not judged (one seed)")
        tell("cannot be told apart, best first:")
        for text in groups_text(block):
            tell(f"  {one_line(text)}")
        if said := seen_text(block):
            tell(said)
    return 0
