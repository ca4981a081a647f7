"""How long a comparison would take on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.comparison.kept_results import finished, remaining
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.run_length import length_of
from harness.evaluation.scoring import each
from harness.method import FitContext

if TYPE_CHECKING:
    from harness.tasks.base import Task


class CellEstimate(NamedTuple):
    """What one cell still asks for."""

    cell: PlannedCell
    state: str  # "finished", "to score" or "to do"
    steps: int  # updates of its training
    seconds: float


def estimates(plan: Plan, workdir: Path) -> Iterator[CellEstimate]:
    """An estimate for every cell of a plan; seeds of one row are measured once."""
    known = dict[tuple[str, str, str], float]()
    for cell in plan.cells:
        state, seconds = "finished", 0.0
        if finished(cell, plan, workdir) is None:
            train, tasks = remaining(cell, plan, workdir)
            state = "to do" if train else "to score"
            key = (cell.row.label, cell.base_model, state)
            seconds = known[key] = known[key] if key in known else estimate_seconds(cell, plan, train, tasks)
        yield CellEstimate(cell, state, steps_of(cell, plan), seconds)


def steps_of(cell: PlannedCell, plan: Plan) -> int:
    """How many updates a cell makes; 0 for methods that the training loop does not train."""
    from harness.training import TrainedMethod

    if not issubclass(cell.row.method, TrainedMethod):
        return 0
    length = length_of(cell.row, plan.corpus(cell.row), cell.seed)
    return length.updates if length is not None else 0


def estimate_seconds(cell: PlannedCell, plan: Plan, train: bool, tasks: list[Task], probe_steps: int = 4) -> float:
    """Seconds to `train` a cell and to score `tasks`: from a few real updates and the encoding of a sample of texts."""
    method = cell.row.method(cell.row.config, base_model=cell.base_model)
    context = FitContext(device=plan.device, precision=plan.experiment.precision)
    total = 0.0
    corpus = plan.corpus(cell.row)
    steps = steps_of(cell, plan)
    dev_texts = list(dict.fromkeys(plan.dev.texts())) if plan.dev and steps and train else []
    if steps and not train:
        context.max_steps = 1  # for something to encode with
        method.fit(corpus, context)
    elif steps:
        for bound in (1, 1 + probe_steps):  # the first call pays for warming up
            context.max_steps = bound
            method.fit(corpus, context)
        total += method.fit_report.cost["train_seconds"] / (1 + probe_steps) * steps
    else:
        started = time.perf_counter()
        method.fit(plan.corpus(cell.row), context)
        total += time.perf_counter() - started
    texts = _texts(tasks)
    encoded = texts or dev_texts
    sample = encoded[:: max(1, len(encoded) // 256)]
    started = time.perf_counter()
    method.encode(sample, device=plan.device)
    per_text = (time.perf_counter() - started) / max(1, len(sample))
    evaluations = looks(steps, cell.row.config.eval_every) if steps else 0  # type: ignore[attr-defined]
    return float(total + per_text * (len(texts) + evaluations * len(dev_texts)))


def looks(steps: int, every: int) -> int:
    """How often a run of `steps` updates meets its dev set: before the first, early, every so many, and at the end."""
    from harness.training.collapse import early_looks

    regular = steps // every + (steps % every > 0)
    return 1 + sum(step < steps for step in early_looks(every)) + regular


def texts_of(plan: Plan, cell: PlannedCell) -> list[str]:
    """The distinct sentences that the tasks of a cell announce, as far as their data can be read."""
    key = cell.blocks
    if key not in plan.announced:
        plan.announced[key] = _texts([task for task in cell.tasks if task.name not in plan.unreadable])
    return plan.announced[key]


def _texts(tasks: Sequence[Task]) -> list[str]:
    readable, _ = each(tasks, lambda task: task.texts())
    return list(dict.fromkeys(text for _, announced in readable for text in announced))
