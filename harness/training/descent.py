"""One gradient descent that can be killed at any moment: its training steps, its curve, its
checkpoints.

The trainer of methods and the flow are subclasses. Each draws its own batches, computes
its own loss, and decides when it evaluates and when it ends.
"""

from __future__ import annotations

import io
import json
import logging
import math
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from zipfile import ZipFile

import torch
from torch import Tensor, nn

from harness.errors import InputError, StopRequested, TrainingStopped
from harness.files.atomic import write_atomic
from harness.files.reading import read_lines
from harness.method import FitContext

logger = logging.getLogger(__name__)


def decay_groups(parameters: Iterable[nn.Parameter], weight_decay: float) -> list[dict[str, Any]]:
    """Return groups for an optimiser: matrices decay, biases and LayerNorm do not.

    Frozen parameters are left out. A parameter that occurs twice, for example of an encoder that
    the heads hold too, is in one group once: an optimiser would step it twice.
    """
    trainable = [p for p in parameters if p.requires_grad]
    learning = {id(p): p for p in trainable}.values()
    groups = [
        {"params": [p for p in learning if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in learning if p.ndim < 2], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Check that an optimiser steps each of its parameters once.

    Raises:
        InputError: a parameter is in it twice.
    """
    parameters = []
    for group in optimizer.param_groups:
        parameters.extend(group["params"])
    distinct = {id(p) for p in parameters}
    if len(distinct) < len(parameters):
        raise InputError(
            "a parameter is in it twice, so it would be trained at twice the rate",
            key="optimizer",
            remedy="build the optimiser from the groups that optimizer() is given",
        )


class Descent:
    """The state of a run, and its training step. `context` gives its device, folder and progress.

        >>> weights = nn.Linear(2, 1)
        >>> adam = torch.optim.AdamW(weights.parameters())
        >>> run = Descent({"model": weights}, adam, list(weights.parameters()), FitContext(),
        ...               steps=10, max_grad_norm=1.0, log_every=5)
        >>> _ = run.update(weights(torch.ones(1, 2)).square().sum(), rate=1e-3)
        >>> run.step, run.steps
        (1, 10)

    `FOLDER/checkpoint/state.pt` holds the weights of `modules`, the optimiser, the random state,
    and what `counters` names: a resumed run has the weights of the uninterrupted one if all else is a function of
    `step`.

    Attributes:
        step, steps: training steps made, and planned (0 where a clock decides).
        parameters: those whose gradients are clipped together.
        counters: names of the attributes (numbers, strings, lists and dicts of them) that a
            subclass wants back.
    """

    counters: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        modules: Mapping[str, nn.Module],
        optimizer: torch.optim.Optimizer,
        parameters: Sequence[nn.Parameter],
        context: FitContext,
        *,
        steps: int,
        max_grad_norm: float,
        log_every: int,
        precision: str = "fp32",
    ) -> None:
        check_optimizer(optimizer)
        self.modules = modules
        self.optimizer = optimizer
        self.parameters = parameters
        self.context = context
        self.step = 0
        self.steps = steps
        self.max_grad_norm = max_grad_norm
        self.log_every = log_every
        self.precision = precision
        self.scaler = torch.amp.GradScaler(
            context.device.split(":")[0], enabled=precision == "fp16"
        )
        self.curves = Curves(context.folder)
        self._file = None
        if context.folder:
            self._file = context.folder / "checkpoint" / "state.pt"
        self._saved = time.monotonic()

    def identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be of this run; by default the folder alone
        says it.
        """
        return {}

    def update(self, loss: Tensor, rate: float) -> Tensor:
        """One step down the gradient of `loss` at learning rate `rate`; the gradient's norm before
        it was clipped.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.max_grad_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step += 1
        return norm

    def at_log_step(self) -> bool:
        """Does the curve get a line for the last update?"""
        is_first_or_last = self.step in (1, self.steps)
        return is_first_or_last or self.step % self.log_every == 0

    def log(self, terms: dict[str, float], *, progress: str, diverged: str) -> None:
        """Put the last update's `terms` into the curve and tell the `progress`.

        Raises:
            TrainingStopped: "loss" is not finite, and `diverged` is the reason; or "grad_norm" is
                not, so that the weights no longer are.
        """
        self.curves.add(self.step, "train", terms)
        reason = ""
        norm = terms["grad_norm"]
        if not math.isfinite(terms["loss"]):
            reason = diverged
        elif not math.isfinite(norm) and not self.scaler.is_enabled():  # fp16 skips such a step
            reason = f"the norm of the gradient is {norm} at step {self.step} of {self.steps}"
        if reason:
            self.curves.flush()
            raise TrainingStopped("diverged", reason)
        if self.context.progress:
            self.context.progress(self.step, self.steps, progress)

    def checkpoint(self) -> bool:
        """Write a checkpoint if the last one is older than `context.checkpoint_seconds`; was one
        written?

        Raises:
            StopRequested: by `context.stop`; the checkpoint is that of this update.
        """
        asked = self.context.stop is not None and self.context.stop()
        since = time.monotonic() - self._saved
        if not asked and since <= self.context.checkpoint_seconds:
            return False
        if self._file is not None:
            self.curves.flush()
            device = self.context.device
            buffer = io.BytesIO()
            states = {name: module.state_dict() for name, module in self.modules.items()}
            counters = {name: getattr(self, name) for name in ("step", *self.counters)}
            cuda_rng = []
            if device.startswith("cuda"):
                cuda_rng.append(torch.cuda.get_rng_state(device))
            state = {
                **states,
                "optimizer": self.optimizer.state_dict(),
                "scaler": self.scaler.state_dict(),
                "rng": torch.get_rng_state(),
                "cuda_rng": cuda_rng,
                "identity": self.identity(),
                **counters,
            }
            torch.save(state, buffer)
            write_atomic(self._file, buffer.getvalue())
        self._saved = time.monotonic()
        if asked:
            raise StopRequested
        return True

    def is_whole(self, state: dict[str, Any]) -> bool:
        """Is what a checkpoint refers to there? For descents that keep more than the checkpoint's
        own file.
        """
        return True

    def _load_checkpoint(self) -> dict[str, Any] | None:
        """The last checkpoint; None where there is none, or a damaged one, which costs its training
        and no more.
        """
        if self._file is None or not self._file.exists():
            return None
        try:
            with ZipFile(
                self._file
            ) as archive:  # torch writes checksums, and does not look at them
                damaged = archive.testzip() is not None
            if damaged:
                state: dict[str, Any] = {}
            else:
                state = torch.load(self._file, map_location="cpu", weights_only=True)
            needed = {
                "step",
                "optimizer",
                "scaler",
                "rng",
                "cuda_rng",
                "identity",
                *self.modules,
                *self.counters,
            }
            if needed <= state.keys() and self.is_whole(state):
                return state
        except IsADirectoryError:
            shutil.rmtree(self._file)  # else no checkpoint could be written
        except OSError:
            raise
        except Exception as error:  # torch's reader raises errors of many kinds
            logger.debug("%s: %s", self._file, error)
        logger.warning("%s: damaged; the training begins again", self._file)
        return None

    def resume(self) -> bool:
        """Go on from the last checkpoint, if there is one.

        Raises:
            InputError: it is another run's.
        """
        state = self._load_checkpoint()
        self.curves.truncate(-1 if state is None else state["step"])
        if state is None:
            return False
        theirs = state["identity"]
        for key, mine in self.identity().items():
            if theirs.get(key) != mine:
                raise InputError(
                    f"holds an unfinished run with another {key} "
                    f"({theirs.get(key)!r}, not {mine!r})",
                    file=f"{self.context.folder}/checkpoint",
                    remedy="go on with that, or delete the folder",
                )
        for name, module in self.modules.items():
            module.load_state_dict(state[name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        torch.set_rng_state(state["rng"])
        if state["cuda_rng"]:
            torch.cuda.set_rng_state(state["cuda_rng"][0], self.context.device)
        for name in ("step", *self.counters):
            setattr(self, name, state[name])
        return True


logger = logging.getLogger(__name__)


class Curves:
    """`FOLDER/curves.jsonl`; lines after the checkpoint that a run resumes from are dropped."""

    def __init__(self, folder: Path | None) -> None:
        self.file = folder / "curves.jsonl" if folder else None
        self.lines: list[dict[str, Any]] = []

    def truncate(self, step: int) -> None:
        """Read what an earlier process wrote, up to and including `step`."""
        if self.file is not None and self.file.exists():
            try:
                texts = [line for line in read_lines(self.file) if line]
                earlier = [json.loads(text) for text in texts]
                self.lines = [line for line in earlier if line["step"] <= step]
            except (InputError, ValueError, TypeError, KeyError, RecursionError):
                if self.file.is_dir():
                    shutil.rmtree(self.file)  # else no curve could be written
                logger.warning("%s: damaged; the curve begins at step %d", self.file, step + 1)
                self.lines = []

    def add(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """A line; `flush` writes it."""
        self.lines.append({"step": step, "kind": kind, **values})

    def flush(self, *, durable: bool = True) -> None:
        """Write all lines to the file; `durable` waits until they are on the disk."""
        if self.file is not None:
            write_atomic(
                self.file,
                "".join(json.dumps(line) + "\n" for line in self.lines),
                durable=durable,
            )
