"""DCLR: SimCSE with vectors of noise as further negatives, and without the negatives that another
model finds similar to the anchor.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.foreign import ForeignEncoder
from harness.method import DEFAULT_BASE_MODEL, POOLING_HELP, Supervision
from harness.recipes import RecipeFile
from harness.sources.embedded import model_fingerprint
from harness.training import Batch
from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit
from methods.pretrained import OwnPooling, open_pooled
from methods.simcse import SimCSE, SimCSEConfig

Form = Literal["printed", "released"]


@full_precision
def ascend_noise(
    anchors: Tensor,
    positives: Tensor,
    noise: Tensor,
    *,
    steps: int,
    rate: float,
    temperature: float,
    form: Form,
) -> Tensor:
    """Move noise vectors (m, d) up the non-uniformity loss, in steps of the length `rate`.

    U = (1/n) sum_i log sum_j exp(cos(a_i, h_j)/t) - cos(a_i, p_i)/t;  h_j <- h_j + rate * g_j /
    |g_j|,  g_j = dU/dh_j

    Args:
        anchors, positives: (n, d); no gradient flows into them, nor into what comes out.
        form: "printed" has the noise alone in the inner sum, "released" the positives of the batch,
            too.

    >>> noise = ascend_noise(torch.eye(2), torch.eye(2), torch.tensor([[1.0, 0.1]]), steps=1, rate=0.1, temperature=1.0,
    ...                  form="printed")
    >>> noise[0, 1].item() > 0.1  # it turns to where it is near both anchors
    True

    Source: Zhou, Zhang, Zhao & Wen, ACL 2022, the noise-based negatives, and their code.
    """
    check_rows(anchors, positives)
    check_temperature(temperature)
    if not len(noise):
        return noise.detach()
    a = unit(anchors.detach())
    p = unit(positives.detach())
    if form == "released":
        others = a @ p.T
    else:
        others = a[:, :0]
    for _ in range(steps):
        with torch.enable_grad():
            moved = noise.detach().requires_grad_()
            logits = torch.cat([others, a @ unit(moved).T], dim=1) / temperature
            (gradient,) = torch.autograd.grad(logits.logsumexp(dim=1).mean(), moved)
        tiny = torch.finfo(gradient.dtype).tiny
        noise = moved + rate * functional.normalize(gradient, dim=1, eps=tiny)
    return noise.detach()


@full_precision
def debiased_contrast(
    anchors: Tensor,
    positives: Tensor,
    noise: Tensor,
    weights: Tensor,
    *,
    temperature: float,
    form: Form,
) -> Tensor:
    """Contrast of every anchor with its positive, against the other positives where the weight is 1
    and vectors of noise.

    printed:  L = -(1/n) sum_i log( exp(s_ii) / [sum_(j != i) w_ij exp(s_ij) + sum_k exp(r_ik)] )
    released: P_i = softmax of (w_ij s_ij, r_ik) with w_ii = 1;
              L = -mean over i and all columns of y log P + (1 - y) log(1 - P), y = 1 at the own
              positive

    with s_ij = cos(a_i, p_j)/t, r_ik = cos(a_i, h_k)/t.

    Args:
        anchors, positives: (n, d). noise: (m, d), m >= 0.
        weights: w, (n, n) of 0 and 1; its diagonal has no effect.

    >>> x = torch.eye(2)  # a sentence and another at a right angle
    >>> round(float(debiased_contrast(x, x, x[:0], torch.ones(2, 2), temperature=1.0, form="printed")), 4)
    -1.0

    Source: Zhou, Zhang, Zhao & Wen, ACL 2022, the loss with instance weighting, which has the
        positive above the line
    alone; the code takes another one, and a weight of 0 there makes a cosine of 0. An anchor
    without negatives gives 0.
    """
    check_rows(anchors, positives)
    check_temperature(temperature)
    a = unit(anchors)
    sims = a @ unit(positives).T / temperature
    far = a @ unit(noise).T / temperature
    own = torch.eye(len(a), dtype=torch.bool, device=a.device)
    if form == "printed":
        left_out = own | (weights == 0)
        others = sims.masked_fill(left_out, -torch.inf)
        negatives = torch.cat([others, far], dim=1)
        has_negatives = (negatives > -torch.inf).any(dim=1)
        denominators = negatives[has_negatives].logsumexp(dim=1)
        return (denominators - sims[own][has_negatives]).sum() / len(a)

    weighted = sims * weights.to(sims.dtype)
    near = torch.where(own, sims, weighted)
    logits = torch.cat([near, far], dim=1)
    chance = logits.log_softmax(dim=1)
    no_target = torch.zeros_like(far, dtype=torch.bool)
    target = torch.cat([own, no_target], dim=1)
    of_others = chance[~target].clamp(max=-1e-7)
    against = torch.log(-torch.expm1(of_others))
    return -(chance[target].sum() + against.sum()) / chance.numel()


class DCLRConfig(SimCSEConfig):
    """Defaults: the released script for BERT-base, but for its complementary model."""

    similarity: Literal["cosine"] = option("cosine", "of two sentences in the loss")
    batch_size: int = option(128, "sentences per training step", ge=2, sweep=[64, 128, 256])
    epochs: int = option(3, "passes over the corpus", ge=1)
    form: Form = option(
        "printed", "the loss of the paper, or that of its code", sweep=["printed", "released"]
    )
    noise_share: float = option(
        1.0, "vectors of noise by sentences of a batch (k); 0: none", ge=0, sweep=(0.5, 5.0)
    )
    noise_steps: int = option(
        4, "steps of the noise up the non-uniformity loss; 0: it stays as drawn", ge=0
    )
    noise_rate: float = option(
        1e-3, "length of such a step; the noise has variance 1 in each dimension", gt=0
    )
    complement: str = option(
        DEFAULT_BASE_MODEL,
        "model that says which negatives are like an anchor: hub id, folder, embedded:NAME",
    )
    complement_pooling: OwnPooling = option(
        "mean", f"of it; own: what its configuration says; or {POOLING_HELP}"
    )
    complement_supervision: Supervision = option(
        "unsupervised", "what its authors knew; the row's, too"
    )
    threshold: float = option(
        0.9,
        "negatives whose cosine it puts at this or above are left out (phi)",
        gt=-1,
        sweep=(0.7, 0.99),
    )


class DCLR(SimCSE):
    """`debiased_contrast` of zA and zB against sentences of the batch and noise of `ascend_noise`."""

    name = "dclr"
    version = 2  # 1: matryoshka cut the vectors of the complement
    sheet = RecipeFile.beside(__file__)
    Config = DCLRConfig

    _complement: tuple[Encoder | ForeignEncoder, ...] = ()  # one, which no checkpoint holds

    @property
    def supervision(self) -> Supervision:
        """Supervision of the complementary model."""
        known: Supervision = self.config.complement_supervision
        return "unsupervised" if known == "untrained" else known

    @property
    def inputs(self) -> dict[str, str]:
        """Fingerprint of the complementary model."""
        return {"complement": model_fingerprint(self.config.complement)}

    def heads(self, encoder: Encoder) -> nn.Module:
        """Return SimCSE's heads; also load the complementary model, which enters no checkpoint."""
        complement = open_pooled(self.config.complement, self.config.complement_pooling)
        complement.to(str(encoder.device))
        self._complement = (complement,)
        return super().heads(encoder)

    def contrast(self, z_a: Tensor, z_b: Tensor, heads: nn.Module, batch: Batch) -> Tensor:
        config: DCLRConfig = self.config
        n, d = z_a.shape
        drawn = torch.from_numpy(batch.rng.standard_normal((int(n * config.noise_share), d)))
        noise = ascend_noise(
            z_a,
            z_b,
            drawn.to(z_a.device, torch.float32),
            steps=config.noise_steps,
            rate=config.noise_rate,
            temperature=config.temperature,
            form=config.form,
        )
        weights = self._negative_weights(batch).to(z_a.device)
        return debiased_contrast(
            z_a,
            z_b,
            noise,
            weights,
            temperature=config.temperature,
            form=config.form,
        )

    @torch.no_grad()
    def _negative_weights(self, batch: Batch) -> Tensor:
        """Return (n, n): 1 where a sentence of the batch may be a negative of another, else 0."""
        (complement,) = self._complement  # opened with the heads
        vectors = unit(complement.encode(batch.texts, convert_to_tensor=True))
        dissimilar: Tensor = vectors @ vectors.T < self.config.threshold
        return dissimilar.float()
