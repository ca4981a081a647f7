"""Training that is killed and taken up again, for the tests of methods with state or randomness of
their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from harness.method import FitContext, Method
from harness.sources import Corpus
from tests.support.bases import narrow_bert


class Kill(Exception):  # noqa: N818 - what it does, not what went wrong
    """Thrown into a run from its progress callback."""


def weights_whole_and_resumed(
    method: type[Method], values: dict[str, Any], corpus: Corpus, folder: Path
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Return the encoder's weights after 4 updates in one go, and after 4 with a kill during the third
    (checkpoint: 2).
    """
    config = method.configure({**values, "log_every": 1, "max_steps": 4})

    def train(**context: Any) -> Any:
        made = method(config, base_model=narrow_bert())
        return made.fit(corpus, FitContext(seed=5, precision="fp32", **context))

    def kill(step: int, steps: int, text: str) -> None:
        if step == 3:
            raise Kill

    whole = train().encoder.state_dict()
    try:
        train(folder=folder, checkpoint_seconds=-1.0, progress=kill)
    except Kill:
        assert (folder / "checkpoint" / "state.pt").is_file()
    return whole, train(folder=folder).encoder.state_dict()
