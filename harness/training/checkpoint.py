"""Checkpoints, best weights and curves of one training run, consistent after a kill at any moment."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.files.atomic import write_atomic


class Checkpoints:
    """`FOLDER/checkpoint/state.pt` (everything needed to go on) and `best-STEP.safetensors` (the selected weights).

    Without a folder the best weights are kept in memory and nothing can be resumed. A best file newer than the state is
    harmless: the resumed run comes to the same step again and writes the same weights.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder / "checkpoint" if folder else None
        self._memory: dict[str, torch.Tensor] | None = None

    def keep_best(self, encoder: nn.Module, step: int) -> None:
        """Keep the encoder's weights as the best so far."""
        from safetensors.torch import save

        weights = {name: t.detach().cpu().clone().contiguous() for name, t in encoder.state_dict().items()}
        if self.folder is None:
            self._memory = weights
        else:
            write_atomic(self.folder / f"best-{step}.safetensors", save(weights))

    def load_best(self, encoder: nn.Module, step: int) -> None:
        """Load the weights that `keep_best` kept at `step`."""
        from safetensors.torch import load_file

        if self.folder is None:
            assert self._memory is not None
            encoder.load_state_dict(self._memory)
        else:
            encoder.load_state_dict(load_file(self.folder / f"best-{step}.safetensors"))

    def save(self, state: dict[str, Any]) -> None:
        """Write the state atomically, then drop best weights that no checkpoint refers to any more."""
        if self.folder is None:
            return
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_atomic(self.folder / "state.pt", buffer.getvalue())
        for file in self.folder.glob("best-*.safetensors"):
            if file.stem != f"best-{state['best']['step']}":
                file.unlink()

    def load(self) -> dict[str, Any] | None:
        """The last state, or None when there is none."""
        if self.folder is None or not (self.folder / "state.pt").exists():
            return None
        state: dict[str, Any] = torch.load(self.folder / "state.pt", map_location="cpu", weights_only=True)
        return state


class Curves:
    """`FOLDER/curves.jsonl`: one line an event; lines after the checkpoint that a run resumes from are dropped."""

    def __init__(self, folder: Path | None) -> None:
        self.file = folder / "curves.jsonl" if folder else None
        self.lines: list[dict[str, Any]] = []

    def cut(self, step: int) -> None:
        """Read what an earlier process wrote, up to and including `step`."""
        if self.file is not None and self.file.exists():
            earlier = [json.loads(line) for line in self.file.read_text().splitlines() if line]
            self.lines = [line for line in earlier if line["step"] <= step]

    def add(self, line: dict[str, Any]) -> None:
        self.lines.append(line)

    def flush(self) -> None:
        if self.file is not None:
            write_atomic(self.file, "".join(json.dumps(line) + "\n" for line in self.lines))
