"""The options of commands that encode with a model: which one, and how."""

from __future__ import annotations

import argparse
from typing import Any


def add_encoding_options(parser: argparse.ArgumentParser) -> None:
    """Add the model and what its encoding may be told."""
    parser.add_argument("model", help="hub id, folder or embedded:NAME")
    parser.add_argument("--pooling", help="pooling for a plain transformer (default: what the model says, else mean)")
    parser.add_argument("--max-length", type=int, help="word pieces kept (default: as many as the model takes)")
    parser.add_argument("--batch-size", type=int, default=64, help="sentences a batch (default: 64)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    parser.add_argument("--progress", action="store_true", help="show a progress bar while encoding")


def encoding_of(args: argparse.Namespace) -> dict[str, Any]:
    """What `harness.evaluate` and `harness.encode` take of them, by name."""
    return {name: getattr(args, name) for name in ("pooling", "max_length", "batch_size", "device", "progress")}
