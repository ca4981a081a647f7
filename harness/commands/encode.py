"""`harness encode`: the vectors of a text as a file of numpy's, whatever its length."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from harness.commands.amounts import duration, size
from harness.commands.encoding_options import add_encoding_options, encoding_of
from harness.files.printable import one_line, tell


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness encode` to the command line."""
    parser = subparsers.add_parser(
        "encode",
        help="write the vectors of a text to a file",
        description="Encode every sentence of a text, in its order, and write the vectors (n, d) in float32 to a file "
        "that numpy reads and maps. Memory does not grow with the number of sentences.",
        epilog="example: harness encode models/simcse --corpus sentences.txt --out vectors.npy; then in Python: "
        'numpy.load("vectors.npy", mmap_mode="r")',
    )
    add_encoding_options(parser)
    parser.add_argument("--corpus", default="embedded:sentences", help="text URI (default: embedded:sentences)")
    parser.add_argument("--limit", type=int, help="the first N sentences of the text")
    parser.add_argument("--out", required=True, metavar="FILE", help="ends with .npy; what is there is replaced")
    parser.add_argument("--normalize", action="store_true", help="vectors of unit length")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when the file is written."""
    from harness import api

    started = time.perf_counter()
    rows = api.encode(
        args.model, args.corpus, out=args.out, limit=args.limit, normalize=args.normalize, **encoding_of(args)
    )
    count, width = rows.shape
    took = duration(time.perf_counter() - started)
    tell(f"{one_line(args.out)}: {count:,} vectors of {width} numbers, {size(Path(args.out).stat().st_size)}, {took}")
    return 0
