"""States for a while: transformers without its reports, and a module in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Only errors and no progress bars inside the block, around calls whose outcome we check
    ourselves.
    """
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def evaluation(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; afterwards exactly the modules that were training train
    again.
    """
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
