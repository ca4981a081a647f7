"""The weights that were best on the dev set."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from torch import nn

from harness.files.atomic import write_atomic


class BestWeights:
    """`FOLDER/checkpoint/best-STEP.safetensors`; without a folder the weights stay in memory.

    A file newer than the checkpoint is harmless: the resumed run comes to the same step again and
    writes the same.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder / "checkpoint" if folder else None
        self._memory: dict[str, torch.Tensor] = {}

    def keep(self, encoder: nn.Module, step: int) -> str:
        """Keep the encoder's weights as the best so far; the sha256 of their file ("" without a
        folder).
        """
        from safetensors.torch import save

        weights = {}
        for name, t in encoder.state_dict().items():
            copy = t.detach().cpu().clone()
            weights[name] = copy.contiguous()
        if self.folder is None:
            self._memory = weights
            return ""
        raw = save(weights)
        write_atomic(self.folder / f"best-{step}.safetensors", raw)
        return hashlib.sha256(raw).hexdigest()

    def load(self, encoder: nn.Module, step: int) -> None:
        """Load the weights that `keep` saved at `step`."""
        from safetensors.torch import load_file

        if self.folder:
            kept = load_file(self.folder / f"best-{step}.safetensors")
        else:
            kept = self._memory
        encoder.load_state_dict(kept)

    def are_whole(self, step: int, sha256: str = "") -> bool:
        """Are the weights that `keep` saved at `step` intact (readable, without its `sha256`)?"""
        from safetensors import SafetensorError, safe_open

        if self.folder is None:
            return True
        file = self.folder / f"best-{step}.safetensors"
        try:
            with file.open("rb") as stream:
                if sha256 and hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
                    return False
            with safe_open(file, framework="pt") as weights:
                return len(weights.keys()) > 0
        except (SafetensorError, FileNotFoundError, IsADirectoryError):
            return False

    def drop_all_but(self, step: int | None) -> None:
        """Remove the files of other steps: to be called when a checkpoint that refers to `step` is
        written.
        """
        for file in self.folder.glob("best-*.safetensors") if self.folder else ():
            if file.stem != f"best-{step}":
                file.unlink()
