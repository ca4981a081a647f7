"""Transformer, pooling and post-processing in one module: sentences in, vectors out, two differently dropped views for training."""

from harness.encoder.model import Encoder
from harness.encoder.pooling import Pooling

__all__ = ["Encoder", "Pooling"]
