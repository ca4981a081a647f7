"""How long a comparison would take on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.comparison.kept_results import finished, remaining
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.run_length import length_of
from harness.evaluation.architecture import architecture
from harness.evaluation.scoring import each
from harness.method import FitContext

if TYPE_CHECKING:
    from harness.method import Method
    from harness.results.record import Record
    from harness.tasks.base import Task

_TIMED = 2  # updates that are timed, after one that is not


class CellEstimate(NamedTuple):
    """What one cell still asks for."""

    cell: PlannedCell
    state: str  # "finished", "to score" or "to do"
    steps: int  # updates of its training
    seconds: float


def estimates(plan: Plan, workdir: Path) -> Iterator[CellEstimate]:
    """An estimate for every cell of a plan: what another seed of its row took on this device, else what some updates of
    it take now. Seeds of one row are measured once, and so is the encoding of one architecture."""
    records = {cell.id: finished(cell, plan, workdir) for cell in plan.cells}
    known = dict[tuple[str, str, str], float]()
    for cell in plan.cells:
        record = records[cell.id]
        if record is not None and record.status == "finished" and _here(record, plan):
            known.setdefault((cell.row.label, cell.base_model, "to do"), record.seconds)
    encoding: dict[str, float] = {}
    for cell in plan.cells:
        state, seconds = "finished", 0.0
        if records[cell.id] is None:
            train, tasks = remaining(cell, plan, workdir)
            state = "to do" if train else "to score"
            key = (cell.row.label, cell.base_model, state)
            if key not in known:
                known[key] = estimate_seconds(cell, plan, train, tasks, encoding)
            seconds = known[key]
        yield CellEstimate(cell, state, steps_of(cell, plan), seconds)


def _here(record: Record, plan: Plan) -> bool:
    """Was a run made on the device that the plan is for?"""
    return record.environment.get("device_name") == plan.device_name


def steps_of(cell: PlannedCell, plan: Plan) -> int:
    """How many updates a cell makes; 0 for methods that the training loop does not train."""
    from harness.training import TrainedMethod

    if not issubclass(cell.row.method, TrainedMethod):
        return 0
    length = length_of(cell.row, plan.corpus(cell.row), cell.seed)
    return length.updates if length is not None else 0


def estimate_seconds(
    cell: PlannedCell, plan: Plan, train: bool, tasks: list[Task], encoding: dict[str, float] | None = None
) -> float:
    """Seconds to `train` a cell and to score `tasks`: from a few real updates and the encoding of a sample of texts.

    `encoding` holds seconds a text of architectures that were measured already, and gets this one's.
    """
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
        ends: dict[int, float] = {0: time.perf_counter()}
        context.progress = lambda step, *_: ends.update({step: time.perf_counter()})
        context.max_steps = 1 + _TIMED
        method.fit(corpus, context)
        made = method.fit_report.training["steps"]
        first = min(1, made - 1)  # which pays for warming up
        total += (ends[made] - ends[first]) / (made - first) * steps
    else:
        started = time.perf_counter()
        method.fit(plan.corpus(cell.row), context)
        total += time.perf_counter() - started
    texts = _texts(tasks)
    per_text = _encoding(method, texts or dev_texts, plan.device, {} if encoding is None else encoding)
    evaluations = looks(steps, cell.row.config.eval_every) if steps else 0  # type: ignore[attr-defined]
    return float(total + per_text * (len(texts) + evaluations * len(dev_texts)))


def _encoding(method: Method, texts: list[str], device: str, known: dict[str, float]) -> float:
    """Seconds a text, of a sample of `texts`; what is known of the architecture is not measured again."""
    build = architecture(method)
    if build not in known:
        sample = texts[:: max(1, len(texts) // 256)]
        started = time.perf_counter()
        method.encode(sample, device=device)
        known[build] = (time.perf_counter() - started) / max(1, len(sample))
    return known[build]


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
