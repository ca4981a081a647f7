"""Alignment and uniformity on the unit sphere (Wang & Isola, ICML 2020)."""

import torch
from torch.nn.functional import normalize

from harness.config import option
from harness.method import MethodCard
from harness.training import TrainedMethod, TrainingConfig


class Config(TrainingConfig):
    uniformity: float = option(1.0, "weight of the uniformity term", ge=0, sweep=(0.1, 10.0), log=True)


class AlignUniform(TrainedMethod):
    """Two dropout views of a sentence are pulled together; all sentences spread over the sphere."""

    name = "align_uniform"
    card = MethodCard(
        title="Alignment and uniformity",
        paper="Wang & Isola, ICML 2020",
        text="sentences",
        supervision="unsupervised",
        cost="one epoch",
    )
    Config = Config

    def loss(self, encoder, heads, batch):
        ids = encoder.tokenize(batch.texts, max_length=self.config.train_length)
        a, b = (normalize(h.float(), dim=1) for h in encoder.two_views(ids, ids))
        align = (a - b).square().sum(dim=1).mean()
        uniform = sum(torch.pdist(h).square().mul(-2).exp().mean().log() / 2 for h in (a, b))
        return {"loss": align + self.config.uniformity * uniform, "align": align, "uniform": uniform}
