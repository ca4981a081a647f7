"""Training: the loop, its batches, its checkpoints. What an author of a method needs is named here."""

from harness.training.batches import BatchStream
from harness.training.descent import Descent
from harness.training.loop import TrainedMethod, Trainer, TrainingConfig, ViewsConfig, planned_steps
from harness.training.view_method import ViewMethod
from harness.views.make import Batch

__all__ = [
    "Batch",
    "BatchStream",
    "Descent",
    "TrainedMethod",
    "Trainer",
    "TrainingConfig",
    "ViewMethod",
    "ViewsConfig",
    "planned_steps",
]
