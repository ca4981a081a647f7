"""Losses of other libraries, and three that a student wrote, as rows of one comparison.

    python -m tools.campaigns.losses WORKDIR [--steps 2]

Each loss is a row beside SimCSE, trained by the same loop from the embedded model. A case passes if
the row has finished and its weights have moved: its score is not that of the start. The report
is in WORKDIR/reports/losses; the same command resumes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sentence_transformer import losses as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

import harness
from harness.files.printable import tell
from harness.training import TrainedMethod

START = "untrained"
TASK = "Embedded-STS-contrast"

Loss = Callable[..., Any]

SENTENCE_TRANSFORMERS: dict[str, Loss] = {
    "MultipleNegativesRanking": st.MultipleNegativesRankingLoss,
    "MultipleNegativesSymmetric": st.MultipleNegativesSymmetricRankingLoss,
    "CachedMultipleNegatives": st.CachedMultipleNegativesRankingLoss,
    "MegaBatchMargin": st.MegaBatchMarginLoss,
    "BatchAllTriplet": st.BatchAllTripletLoss,
    "BatchHardTriplet": st.BatchHardTripletLoss,
    "BatchHardSoftMargin": st.BatchHardSoftMarginTripletLoss,
    "BatchSemiHardTriplet": st.BatchSemiHardTripletLoss,
    "ContrastiveTensionInBatch": st.ContrastiveTensionLossInBatchNegatives,
    "Matryoshka": lambda model: st.MatryoshkaLoss(
        model, st.MultipleNegativesRankingLoss(model), [256, 64]
    ),
}


def metric_learning() -> dict[str, Loss]:
    """Return ten losses of pytorch-metric-learning."""
    from pytorch_metric_learning import losses as pml

    return {
        "NTXent": pml.NTXentLoss,
        "SupCon": pml.SupConLoss,
        "MultiSimilarity": pml.MultiSimilarityLoss,
        "Circle": pml.CircleLoss,
        "TripletMargin": pml.TripletMarginLoss,
        "NPairs": pml.NPairsLoss,
        "Angular": pml.AngularLoss,
        "GeneralizedLiftedStructure": pml.GeneralizedLiftedStructureLoss,
        "SignalToNoise": pml.SignalToNoiseRatioContrastiveLoss,
        "VICReg (pml)": pml.VICRegLoss,
    }


def angle(a: Tensor, b: Tensor, temperature: float = 0.05) -> Tensor:
    """In-batch contrast by angles: the student's first loss."""
    cosines = normalize(a, dim=1) @ normalize(b, dim=1).T
    angles = torch.acos(cosines.clamp(-1 + 1e-6, 1 - 1e-6))
    return cross_entropy(-angles / temperature, torch.arange(len(a), device=a.device))


class Teacher(TrainedMethod):
    """Each view predicts what a slowly following copy makes of the other: the student's second."""

    name = "teacher_of_a_student"
    version = 1

    def heads(self, encoder: Any) -> nn.Module:
        teacher = encoder.copy().requires_grad_(False)
        d = encoder.dimension
        predictor = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))
        return nn.ModuleDict({"teacher": teacher, "predictor": predictor})

    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, Tensor]:
        views = encoder.two_views(batch.texts)
        with torch.no_grad():
            targets = heads["teacher"].two_views(batch.texts, differ_by=None)
        terms = []
        for view, target in zip(views, reversed(targets), strict=True):
            predicted = normalize(heads["predictor"](view), dim=1)
            terms.append(2 - 2 * (predicted * normalize(target, dim=1)).sum(dim=1).mean())
        return {"loss": terms[0] + terms[1]}

    def after_update(self, encoder: Any, heads: Any) -> None:
        with torch.no_grad():
            pairs = zip(heads["teacher"].parameters(), encoder.parameters(), strict=True)
            for slow, fast in pairs:
                slow.mul_(0.99).add_(fast, alpha=0.01)


def rows() -> Iterator[Any]:
    """Yield the rows: twenty of libraries, three of a student, SimCSE."""
    for name, build in {**SENTENCE_TRANSFORMERS, **metric_learning()}.items():
        yield harness.loss(build=build, name=name)
    yield harness.loss(angle, name="angle of a student")
    yield Teacher
    yield "contrastive_tension"  # what the refusal of ContrastiveTensionLoss names
    yield "simcse"


def run(workdir: Path, steps: int) -> int:
    """Print a line for each row; return how many failed."""
    found = harness.compare(
        list(rows()),
        name="losses",
        seeds=1,
        suites=TASK,
        max_steps=steps,
        batch_size=16,
        learning_rate=1e-3,
        select="last",
        pooling="mean",
        workdir=workdir,
        tracking_uri="none",
        formats=["html"],
    )
    start = next(r.score(TASK) for r in found.records if r.row.startswith(START))
    failed = 0
    tell("row, status, score, ok")
    for record in found.records:
        if record.row.startswith(START):
            continue
        score = record.score(TASK)
        moved = score is not None and score != start
        failed += not moved
        shown = "none" if score is None else f"{100 * score:.2f}"
        reason = f" ({record.reason})" if record.reason else ""
        tell(f"{record.row}, {record.status}{reason}, {shown}, {'yes' if moved else 'NO'}")
    tried = len(found.records) - 1
    tell(f"tried {tried}, passed {tried - failed}, failed {failed}; {date.today()}")
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("workdir", type=Path)
    parser.add_argument("--steps", type=int, default=2)
    given = parser.parse_args()
    sys.exit(1 if run(given.workdir, given.steps) else 0)
