"""Sentences to vectors: transformer, pooling and post-processing; two differently dropped views for
training.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.encoder.model import Encoder
    from harness.encoder.pooling import Pooling

__all__ = ["Encoder", "Pooling"]


def __getattr__(name: str) -> Any:
    """Import a class on first use: with it comes torch, which a verdict does not need."""
    if name == "Encoder":
        from harness.encoder.model import Encoder

        return Encoder
    if name == "Pooling":
        from harness.encoder.pooling import Pooling

        return Pooling
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
