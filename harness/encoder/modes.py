"""What surrounds an encoding: evaluation mode, a progress bar, valid text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from harness.errors import InputError


def clean(text: str, row: int = 0) -> str:
    """`text` as valid Unicode: a lone surrogate becomes "?".

    Raises:
        InputError: not a string; `row` says where.
    """
    if not isinstance(text, str):
        raise InputError(f"sentence {row} is {type(text).__name__}, not a string: {text!r:.80}")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


@contextmanager
def evaluation(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; afterwards exactly the modules that were training train again."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def progress(total: int, show: bool) -> Iterator[Any]:
    """A bar on standard error, advanced by calling what the block gets with a count; nothing unless `show`."""
    if not show:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("encoding", total=total)
        yield lambda count: bar.advance(task, count)
