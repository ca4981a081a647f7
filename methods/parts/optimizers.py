"""AdamW without its bias correction, which some of the reference codes turned off."""

from __future__ import annotations

from typing import Any

import torch

# Adam divides its moments by 1 - beta^t. At this t both are exactly 1, in single precision too.
_LONG_PAST = 1_000_000


def adamw(
    groups: list[dict[str, Any]],
    *,
    learning_rate: float,
    eps: float = 1e-8,
    bias_correction: bool = True,
) -> torch.optim.AdamW:
    """AdamW with betas 0.9 and 0.999: p <- (1 - lr w) p - lr m / (sqrt(v) + eps), w the weight
    decay of the group.

    With bias correction m and v are divided by 1 - beta^t. Without it, as in BERT's original
    optimiser and transformers' former AdamW(correct_bias=False), the first update is lr * 0.1 /
    sqrt(0.001) = 3.2 times as long as with it. The optimiser is PyTorch's own: its moments, still
    zero, get a long past.
    """
    optimizer = torch.optim.AdamW(
        groups,
        lr=learning_rate,
        betas=(0.9, 0.999),
        eps=eps,
        fused=True,
    )
    if not bias_correction:
        for group in optimizer.param_groups:
            for p in group["params"]:
                optimizer.state[p] = {
                    "step": torch.full((), _LONG_PAST, dtype=torch.float32, device=p.device),
                    "exp_avg": torch.zeros_like(p, memory_format=torch.preserve_format),
                    "exp_avg_sq": torch.zeros_like(p, memory_format=torch.preserve_format),
                }
    return optimizer
