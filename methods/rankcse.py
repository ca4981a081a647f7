"""RankCSE: SimCSE whose ranking of a batch agrees between the views, and with that of teachers."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from pydantic import field_validator
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.foreign import ForeignEncoder
from harness.encoder.network import TokenIds
from harness.method import DEFAULT_BASE_MODEL, POOLING_HELP, Supervision
from harness.recipes import RecipeFile
from harness.sources.embedded import model_fingerprint
from harness.training import Batch
from methods.parts.row_vectors import check_rows, full_precision, unit
from methods.pretrained import OwnPooling, open_pooled
from methods.simcse import SimCSE, SimCSEConfig


@full_precision
def ranking_consistency(scores: Tensor) -> Tensor:
    """Mean over i of JS(P_i, Q_i) in nats: P = softmax of the rows of `scores` (n, n), Q of its
    columns.

    JS(P, Q) = (KL(P, M) + KL(Q, M)) / 2, M = (P + Q) / 2. `scores` are similarities of both views
    by temperature.

    Source: Liu et al., ACL 2023, the ranking consistency.
    """
    p = scores.log_softmax(1)
    q = scores.T.log_softmax(1)
    m = torch.logaddexp(p, q) - torch.log(torch.tensor(2.0, dtype=p.dtype, device=p.device))
    kl_p = (p.exp() * (p - m)).sum(1)
    kl_q = (q.exp() * (q - m)).sum(1)
    return 0.5 * (kl_p + kl_q).mean()


@full_precision
def list_net(scores: Tensor, teacher: Tensor) -> Tensor:
    """Mean over i of -sum_j softmax(teacher_i)_j log softmax(scores_i)_j, over the others j != i of
    the batch.

    Args:
        scores, teacher: (n, n), similarities by their temperatures. n = 1 gives 0.

    Source: Liu et al., ACL 2023, the ListNet distillation; the code leaves out the sentence itself.
    """
    n = len(scores)
    if n == 1:
        return scores.sum() * 0.0
    others = ~torch.eye(n, dtype=torch.bool, device=scores.device)
    s = scores[others].view(n, n - 1)
    t = teacher[others].view(n, n - 1)
    return -(t.softmax(1) * s.log_softmax(1)).sum(1).mean()


@full_precision
def list_mle(scores: Tensor, teacher: Tensor) -> Tensor:
    """Mean over i of the sum over places r of -log( exp(s_i,pi(r)) / sum_{k >= r} exp(s_i,pi(k)) ).

    pi is the teacher's order of row i.

    Args:
        scores: (n, n), similarities divided by the temperature. teacher: (n, n); only its order
            counts, and equal values stay in place.

    Source: Liu et al., ACL 2023, the ListMLE distillation: the negative log-likelihood of the order
        of each sentence.
    """
    order = teacher.argsort(dim=1, descending=True, stable=True)
    ranked = scores.gather(1, order)
    rest = ranked.flip(1).logcumsumexp(1).flip(1)
    return (rest - ranked).sum(1).mean()


class RankCSEConfig(SimCSEConfig):
    """Defaults: the paper's on BERT-base, but for its teachers."""

    similarity: Literal["cosine"] = option("cosine", "of two sentences in the loss")
    batch_size: int = option(128, "sentences per training step", ge=2, sweep=[64, 128, 256])
    teachers: tuple[str, ...] = option(
        (DEFAULT_BASE_MODEL,),
        "one or two models whose ranking is learnt: hub ids, folders or embedded:NAME",
    )
    teacher_pooling: OwnPooling = option(
        "mean", f"of the teachers; own: what their configuration says; or {POOLING_HELP}"
    )
    teacher_supervision: Supervision = option(
        "unsupervised", "what the teachers' authors knew; the row's, too"
    )
    teacher_share: float = option(0.33, "share of the first of two teachers (alpha)", ge=0, le=1)
    distillation: Literal["listmle", "listnet"] = option(
        "listmle", "how the teachers' ranking is learnt", sweep=["listmle", "listnet"]
    )
    consistency_weight: float = option(
        1.0, "weight of the views' agreement (beta)", ge=0, sweep=[0.1, 1.0, 10.0]
    )
    ranking_weight: float = option(
        1.0, "weight of the teachers' ranking (gamma)", ge=0, sweep=[0.1, 1.0, 10.0]
    )
    ranking_temperature: float = option(
        0.05, "divides the similarities that are ranked (tau_2)", gt=0
    )
    teacher_temperature: float = option(
        0.025, "divides the teachers' similarities in ListNet (tau_3)", gt=0
    )
    in_parts: ClassVar[bool] = True

    @field_validator("teachers")
    @classmethod
    def _one_or_two(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not 1 <= len(value) <= 2 or not all(value):
            raise ValueError("must be one or two names of models")
        return value


class RankCSE(SimCSE):
    """L = NT-Xent + beta * `ranking_consistency` + gamma * `list_mle` or `list_net` against the
    teachers.
    """

    name = "rankcse"
    version = 3  # 1: ListMLE was a mean over places; 2: matryoshka cut the vectors of teachers
    sheet = RecipeFile.beside(__file__)
    Config = RankCSEConfig

    _teachers: tuple[Encoder | ForeignEncoder, ...] = ()

    @property
    def supervision(self) -> Supervision:
        """Supervision of the teachers."""
        known: Supervision = self.config.teacher_supervision
        return "unsupervised" if known == "untrained" else known

    @property
    def inputs(self) -> dict[str, str]:
        """Fingerprints of the teachers."""
        return {
            f"teacher {k}": model_fingerprint(name)
            for k, name in enumerate(self.config.teachers, 1)
        }

    def heads(self, encoder: Encoder) -> nn.Module:
        """Return SimCSE's heads; also load the teachers, which enter no checkpoint."""
        self._teachers = tuple(
            open_pooled(name, self.config.teacher_pooling) for name in self.config.teachers
        )
        for teacher in self._teachers:
            teacher.to(str(encoder.device))
        return super().heads(encoder)

    def further_terms(
        self,
        z_a: Tensor,
        z_b: Tensor,
        encoder: Encoder,
        heads: Any,
        ids: TokenIds,
        batch: Batch,
    ) -> dict[str, Tensor]:
        config: RankCSEConfig = self.config
        cosines = cosines_of(z_a, z_b)
        consistency = config.consistency_weight * ranking_consistency(cosines / config.temperature)
        ranked = cosines / config.ranking_temperature
        teacher = self._teacher_cosines(batch, ranked)
        if config.distillation == "listmle":
            ranking = list_mle(ranked, teacher)
        else:
            ranking = list_net(ranked, teacher / config.teacher_temperature)
        return {"consistency": consistency, "ranking": config.ranking_weight * ranking}

    @torch.no_grad()
    def _teacher_cosines(self, batch: Batch, like: Tensor) -> Tensor:
        """Return the weighted cosines (n, n) of the batch's sentences by the teachers."""
        share = self.config.teacher_share
        weights = (share, 1 - share) if len(self._teachers) == 2 else (1.0,)
        total = torch.zeros_like(like)
        for weight, teacher in zip(weights, self._teachers, strict=True):
            vectors = teacher.encode(batch.texts, convert_to_tensor=True).to(like.device)
            total += weight * cosines_of(vectors, vectors)
        return total


@full_precision
def cosines_of(a: Tensor, b: Tensor) -> Tensor:
    """Cosines (n, n) of the rows of (n, d) and (n, d)."""
    check_rows(a, b)
    return unit(a) @ unit(b).T
