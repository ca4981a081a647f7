"""Sentences to vectors: transformer, pooling and post-processing; two differently dropped views for
training.
"""

from harness.encoder.model import Encoder
from harness.encoder.pooling import Pooling

__all__ = ["Encoder", "Pooling"]
