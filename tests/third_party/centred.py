"""Pooled vectors without what all sentences share: the mean vector of the corpus is taken away."""

import torch

from harness.config import option
from harness.method import Method, MethodCard, MethodConfig, require_corpus


class Config(MethodConfig):
    share: float = option(1.0, "how much of the mean is taken away", ge=0, le=1, sweep=(0.0, 1.0))


class Centred(Method):
    """No gradient: one pass over the corpus, then a shift of every vector."""

    name = "centred"
    card = MethodCard(
        title="Centred pooling",
        paper="the first step of Mu & Viswanath, ICLR 2018",
        text="sentences",
        supervision="unsupervised",
        deterministic=True,
        cost="one pass of encoding",
    )
    Config = Config

    def fit(self, corpus=None, context=None):
        sentences = require_corpus(self, corpus)
        encoder = self.load_base().to(context.device if context else "cpu").eval()
        mean = encoder.encode(sentences, convert_to_tensor=True).mean(dim=0)
        shift = torch.nn.Linear(len(mean), len(mean), device=mean.device)
        with torch.no_grad():
            shift.weight.copy_(torch.eye(len(mean)))
            shift.bias.copy_(-self.config.share * mean)
        encoder.affine = shift
        self._encoder = encoder
        return self
