"""The collapse guard: are the embeddings becoming all alike, since when, and what of the loss went
with it?

It looks early, after 1, 2, 4, 8, ... training steps, and then with every score on the dev set. An
early look draws no random number and selects nothing: the weights of a run that finishes are those
that it has without them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.results.flat import NO_TERMS

if TYPE_CHECKING:
    from harness.encoder import Encoder

EARLY = (
    "early"  # the kind of a curve's line: scored as for "dev", before the first score that selects
)
# shares of what a term was
_VANISHED = 0.01
_UNMOVED = 0.01
_CONSTANT = 1e-6  # relative range of a loss that does not move from batch to batch
_LINES = 6  # of the curve, from which on a loss is said not to move
_SAMPLE = 64  # sentences whose two views are compared


def early_looks(every: int) -> list[int]:
    """1, 2, 4, 8, ... below the first regular look."""
    powers = range((every - 1).bit_length())
    return [2**power for power in powers]


@dataclass(frozen=True)
class Limits:
    """When embeddings are as good as equal, and a loss that of equal ones.

    Attributes:
        batch_size, min_std, min_rank: as in a training config.
    """

    batch_size: int
    min_std: float
    min_rank: float


def describe_collapse(seen: Mapping[str, Any], limits: Limits) -> str:
    """What says that embeddings have become constant (spread) or span a line only (rank); empty
    where nothing does.
    """
    if seen["std"] < limits.min_std:
        spread = seen["std"]
        return f"spread of the embeddings {spread:.2g} is under {limits.min_std}"
    if seen["effective_rank"] < limits.min_rank:
        rank = seen["effective_rank"]
        return f"effective rank of the embeddings {rank:.2f} is under {limits.min_rank}"
    return ""


def has_collapsed_twice(looks: Sequence[Mapping[str, Any]], limits: Limits) -> bool:
    """Does an early look, the last of `looks`, end the run? Where the one before saw the same,
    after an update too.

    Not where the untrained embeddings are as much alike: some base models begin so and get better.
    """
    return (
        len(looks) > 2
        and not describe_collapse(looks[0], limits)
        and all(describe_collapse(look, limits) for look in looks[-2:])
    )


def explain_collapse(
    looks: Sequence[Mapping[str, Any]],
    lines: Sequence[Mapping[str, Any]],
    limits: Limits,
    steps: int,
    views: float | None,
) -> str:
    """One line on a run that collapsed: what is all alike and since when, its geometry, and what
    the loss did.

    Args:
        looks: what was seen of the dev set, the last of them now.
        lines: the terms of the loss, as the curve has them.
        steps: planned training steps.
        views: see `view_cosine`.
    """
    seen = looks[-1]
    parts = [
        f"{describe_collapse(seen, limits)} at step {seen['step']} of {steps}",
        _began(looks, limits),
        _geometry(seen, views),
        describe_loss_terms(lines, limits.batch_size),
    ]
    return "; ".join(part for part in parts if part)


def _began(looks: Sequence[Mapping[str, Any]], limits: Limits) -> str:
    """When the embeddings became all alike, as far as the looks tell."""
    first = looks[-1]["step"]
    before = None
    for look in reversed(looks):
        if not describe_collapse(look, limits):
            before = look["step"]
            break
        first = look["step"]
    if first == 0:
        return "as the untrained ones are"
    return f"it began by training step {first}" + (
        f" (not yet at {before})" if before is not None else ""
    )


def _geometry(seen: Mapping[str, Any], views: float | None) -> str:
    """The geometry that went with it."""
    spread = f"spread {seen['std']:.2g}"
    rank = f"effective rank {seen['effective_rank']:.1f}"
    said = [spread, rank]
    if "mean_cosine" in seen:
        said.append(f"mean cosine of unlike sentences {seen['mean_cosine']:.3f}")
    if views is not None:
        said.append(f"of two dropped views of one {views:.3f}")
    return ", ".join(said)


def view_cosine(encoder: Encoder, texts: Sequence[str]) -> float | None:
    """Mean cosine of two dropped views of some texts; None of an encoder that makes none. Draws
    random numbers: for a run that has ended.
    """
    import torch

    if not hasattr(encoder, "two_views") or not texts:
        return None
    encoder.train()
    with torch.no_grad():
        first, second = encoder.two_views(texts[:_SAMPLE], differ_by=None)
        cosines = torch.nn.functional.cosine_similarity(first.float(), second.float())
    encoder.eval()
    return float(cosines.mean())


def describe_loss_terms(lines: Sequence[Mapping[str, Any]], batch_size: int) -> str:
    """What became of each term of the loss, from the training lines of a curve: the vanished ones
    first.
    """
    if not lines:
        return ""
    names = [name for name in lines[-1] if name not in NO_TERMS]
    names = [name for name in names if name != "loss"] or names
    vanished: list[str] = []
    unmoved: list[str] = []
    moved: list[str] = []
    for name in names:
        values = []
        for line in lines:
            if name in line:
                values.append(float(line[name]))
        first = values[0]
        last = values[-1]
        most = max(map(abs, values))
        of_equals = _of_equals(last, batch_size)
        if abs(last) <= _VANISHED * most:
            vanished.append(f"{name} ({first:.3g} to {last:.2g})")
        elif max(values) - min(values) <= _UNMOVED * most:
            unmoved.append(f"{name} ({last:.4g}{of_equals})")
        else:
            moved.append(f"{name} went from {first:.3g} to {last:.3g}{of_equals}")
    parts = []
    if vanished:
        parts.append(f"{', '.join(vanished)} vanished")
    if unmoved:
        parts.append(f"{', '.join(unmoved)} did not move")
    if moved:
        parts.append(", ".join(moved))
    if len(names) > 1:
        return f"of the loss, {'; '.join(parts)}"
    return "; ".join(parts)


def note_constant_loss(lines: Sequence[Mapping[str, Any]]) -> str:
    """A note on a loss that stayed the same from batch to batch, which no loss does that learns;
    empty else.
    """
    values = [float(line["loss"]) for line in lines]
    constant: list[float] = []
    for value in reversed(values):
        if not constant:
            constant.append(value)
            continue
        first = constant[0]
        if abs(value - first) > _CONSTANT * abs(first):
            break
        constant.append(value)
    if len(constant) < _LINES:
        return ""
    since = lines[-len(constant)]["step"]
    loss = f"{constant[0]:.4g}"
    return f"the loss did not move from {loss} after training step {since}: nothing was learnt from then on"


def not_finite(terms: Mapping[str, float]) -> str:
    """The terms of the loss that are no numbers any more."""
    lost = []
    for name, value in terms.items():
        if name != "loss" and not math.isfinite(value):
            lost.append(f"{name} {value}")
    if lost:
        return f" ({', '.join(lost)})"
    return ""


def _of_equals(value: float, batch_size: int) -> str:
    """A softmax over a batch whose vectors are all equal gives its logarithm."""
    trivial = math.log(batch_size)
    if abs(value - trivial) < 0.002 * trivial:
        return f" = log {batch_size}, that of equal vectors"
    return ""
