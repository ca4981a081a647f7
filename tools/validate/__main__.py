"""Measures the parts that are not measured yet: see the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator

from tools.validate import public_models
from tools.validate.evidence import Evidence, cases_of, read_evidence, save

Measure = Callable[[dict[str, str], Collection[str]], Iterator[Evidence]]
PARTS: dict[str, Measure] = {
    public_models.PART: public_models.measure,
}


def main(argv: list[str] | None = None) -> int:
    """Measure, print and save each case."""
    parser = argparse.ArgumentParser(description="Measure what docs/validation.md shows.")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="only this part")
    parser.add_argument("--again", action="store_true", help="also what was measured before")
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="where a model is, in place of the hub",
    )
    args = parser.parse_args(argv)
    folders = dict(one.split("=", 1) for one in args.model)
    for part in args.only or PARTS:
        known = () if args.again else tuple(cases_of(part, read_evidence()))
        for found in PARTS[part](folders, known):
            one = save(found)
            against = "" if one.reference is None else f" (reference {one.reference:.6g})"
            print(f"{part}: {one.case}: {one.quantity} {one.value:.6g}{against}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
