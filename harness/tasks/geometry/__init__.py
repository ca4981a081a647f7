"""The geometry of the embedding space: alignment, uniformity, ranks, isotropy."""

from harness.tasks.geometry.alignment_uniformity import alignment, uniformity

__all__ = ["alignment", "uniformity"]
