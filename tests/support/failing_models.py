"""Models whose encoding fails, as other processes can import them."""

from __future__ import annotations

import os
from typing import Any


class Dies:
    """Ends its process, as the system does where memory runs out."""

    def encode(self, texts: list[str], **options: Any) -> Any:
        os._exit(137)


class RunsOutOfMemory:
    """Raises what PyTorch raises where a device has too little memory."""

    def encode(self, texts: list[str], **options: Any) -> Any:
        import torch

        return torch.empty(1 << 60)
