"""One cell of a comparison: fit, save, evaluate, record. Idempotent, and resumable after a kill at any moment."""

from __future__ import annotations

import io
import json
import logging
import shutil
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.comparison import inference_cost
from harness.comparison.keeping import retrained
from harness.comparison.kept_results import earlier_record, finished
from harness.comparison.kept_weights import keep, kept_report
from harness.comparison.measured_precision import precision_of
from harness.comparison.plan import Plan, PlannedCell, describe_data
from harness.comparison.rescoring import due, merged, merged_figures, merged_rows
from harness.comparison.utilisation import utilisation
from harness.errors import InputError, StopAsked, TrainingStopped
from harness.evaluation.scoring import announced, each, error_file, set_aside
from harness.evaluation.vector_cache import EmbeddingCache, folder_hash
from harness.files.atomic import write_atomic
from harness.files.faults import storage_fault
from harness.files.locks import run_lock
from harness.files.printable import markdown_text
from harness.files.redaction import redacted
from harness.identity.code import code_ids
from harness.machine.distributed import ALONE
from harness.machine.environment import describe, load_average, peak_memory_bytes, reset_peak_memory
from harness.method import FitContext, Method
from harness.results.checksums import MODEL, results, weights
from harness.results.model_card import write_card
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.seeds import seed_text
from harness.tasks.base import TaskResult, task_key

if TYPE_CHECKING:
    from harness.tasks.base import Task

log = logging.getLogger(__name__)

Progress = Callable[[int, int, str], None]


def run_cell(
    cell: PlannedCell,
    plan: Plan,
    workdir: Path,
    *,
    command: str,
    progress: Progress | None = None,
    on_dev: Callable[[int, float], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Record:
    """Bring one cell to its record and return it; a cell that is finished already costs nothing.

    `on_dev` is as in `FitContext`: a study's way to watch the dev scores and to give the run up. So is `stop`; it is
    asked before texts are encoded, too.

    A method that collapses, diverges or fails gives a record with that status and the reason; only a file system that
    refuses (see `harness.files.faults`), the user's interrupt and `StopAsked` end the comparison: what is kept then,
    the next call goes on from.
    """
    with run_lock(RunFolder(workdir, cell.id).path):
        return run_held_cell(cell, plan, workdir, command=command, progress=progress, on_dev=on_dev, stop=stop)


def run_held_cell(
    cell: PlannedCell,
    plan: Plan,
    workdir: Path,
    *,
    command: str,
    progress: Progress | None,
    on_dev: Callable[[int, float], None] | None,
    stop: Callable[[], bool] | None = None,
) -> Record:
    """As `run_cell`, for a caller that holds the `run_lock` of the cell's folder."""
    done = finished(cell, plan, workdir)  # another comparison may have made it while this one waited
    if done is not None:
        return done
    folder = RunFolder(workdir, cell.id)
    folder.sweep()
    if damage := folder.put_damaged_record_aside():
        log.warning("%s: put aside, and the run scored anew", damage)
    earlier = earlier_record(cell, folder)
    tasks = due(earlier, cell, plan)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    status, reason = "finished", ""
    result: TaskResult | None = None
    timing: dict[str, float] = {}
    architecture, load = "", load_average()
    method = cell.row.method(cell.row.config, base_model=cell.base_model)
    reset_peak_memory(plan.device)
    try:
        if cell.fault:
            raise InputError(cell.fault)
        known = folder.read_if_sound()
        method = _fitted(method, cell, plan, workdir, progress, on_dev, stop)
        if cell.row.trained and (same := retrained(folder, known)) is not None:
            earlier, tasks = same, due(same, cell, plan)
        content = folder_hash(folder.model) if cell.row.trained else cell.id
        result = _evaluate(method, tasks, plan, progress, stop, EmbeddingCache(workdir / "embeddings"), content)
        timing = {**result.cost, "parameters": float(method.parameters())}
        if not method.transductive:
            architecture = inference_cost.measure(method, workdir, plan.device)
    except TrainingStopped as stop:
        status, reason = stop.status, stop.reason
    except Exception as error:
        if (fault := storage_fault(error, workdir)) is not None:
            if fault is error:
                raise
            raise fault from error
        if earlier is not None:  # what is known of the run stays
            result = TaskResult()
            faults: list[dict[str, Exception]] = [{}, {}]
            for task in tasks:
                faults[task.name not in plan.unreadable][task.name] = error
            set_aside(result, *faults)
        else:
            said = redacted(str(error)).splitlines() or [""]
            status, reason = "failed", said[0] if cell.fault else f"{type(error).__name__}: {said[0]}"
        write_atomic(folder.path / "error.txt", redacted(traceback.format_exc()))
    report = method.fit_report
    dev = plan.dev if cell.identity["dev"] is not None else None
    notes = [*report.training.get("notes", []), *(dev.notes if dev else []), *(result.notes if result else [])]
    memory = {"peak_memory_bytes": float(peak_memory_bytes(plan.device))}
    environment = describe(plan.device, precision_of(plan, workdir) if report.training.get("precision") else "fp32")
    loads = {"load_start": load, "load_end": load_average()}
    record = Record(
        id=cell.id,
        comparison=plan.experiment.name,
        rehearsal=plan.rehearsal is not None,
        status=status,  # type: ignore[arg-type]
        reason=reason,
        row=cell.row.label,
        method=cell.row.method.name,
        config=cell.row.config.model_dump(mode="json"),
        base_model=cell.base_model,
        seed=int(cell.seed),
        supervision=cell.row.method.supervision_for(cell.row.config),
        **describe_data(plan, cell.row),
        inputs={} if cell.fault else cell.row.method.inputs(cell.row.config),
        identity=cell.identity,
        scores=result.scores if result else [],
        missing=result.missing if result else {},
        protocols=result.protocols if result else {},
        evaluation={task_key(task): plan.evaluation[task_key(task)] for task in tasks},
        training={**report.training, **({"notes": notes} if notes else {})},
        architecture=architecture,
        cost={**report.cost, **timing, **memory, **{key: most for key, most in loads.items() if most is not None}},
        environment=environment,
        command=command,
        started=started,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if result is not None:
        record = _keep(folder, record, result, earlier, tasks)
    for task in tasks:  # what failed in an earlier evaluation may not have failed now
        (folder.path / error_file(task.name)).unlink(missing_ok=True)
    for name, text in (result.artifacts if result is not None else {}).items():
        write_atomic(folder.path / name, text)
    if status == "finished" and cell.row.trained:
        write_card(folder.model, record)
    record = record.model_copy(update={"files": _hashes(folder, earlier)})
    folder.write(record)
    if status != "failed":  # what failed is tried again, and goes on from its checkpoint
        shutil.rmtree(folder.checkpoint, ignore_errors=True)
    return record


def _hashes(folder: RunFolder, earlier: Record | None) -> dict[str, str]:
    """Of the files of a run; an evaluation that adds scores vouches for what it wrote alone."""
    hashes = {**results(folder), **weights(folder)}
    if earlier is not None and earlier.files:
        untouched = (MODEL, folder.curves_file.name)
        hashes |= {name: digest for name, digest in earlier.files.items() if name.startswith(untouched)}
    return hashes


def _keep(folder: RunFolder, record: Record, result: TaskResult, earlier: Record | None, tasks: list[Task]) -> Record:
    """Store what is kept of a run's examples, beside that of tasks that it was scored on before; its whole record."""
    pairs, outcomes, sample, figures = result.pairs, result.outcomes, result.sample, result.figures
    if earlier is not None:
        record = merged(earlier, record, tasks)
        pairs = merged_rows(folder.pairs(), pairs, tasks) if folder.pairs_file.exists() else pairs
        outcomes = merged_rows(folder.outcomes(), outcomes, tasks) if folder.outcomes_file.exists() else outcomes
        sample = merged_rows(folder.sample(), sample, tasks) if folder.sample_file.exists() else sample
        figures = merged_figures(folder.figures(), figures, tasks)
    kept = ((pairs, folder.pairs_file), (outcomes, folder.outcomes_file), (sample, folder.sample_file))
    for frame, file in kept:
        if frame is not None:
            buffer = io.BytesIO()
            frame.to_parquet(buffer, index=False, compression="zstd")
            write_atomic(file, buffer.getvalue())
    if figures:
        write_atomic(folder.figures_file, json.dumps(figures) + "\n")
    return record


def _fitted(
    method: Method,
    cell: PlannedCell,
    plan: Plan,
    workdir: Path,
    progress: Progress | None,
    on_dev: Callable[[int, float], None] | None,
    stop: Callable[[], bool] | None,
) -> Method:
    """The fitted method: loaded when an earlier process had finished the training, else trained now.

    A trained method is always evaluated as it was saved, so an evaluation that is repeated sees the same weights.
    """
    folder = RunFolder(workdir, cell.id)
    if (report := kept_report(folder)) is not None:
        method = type(method).load(folder.model)
        method.fit_report = report
        return method
    if folder.fitted_file.exists():
        log.warning("%s: not as it was saved any more; trained again", folder.model)
        folder.discard_weights()
    from harness.training import TrainedMethod

    context = _conditions(cell, plan, workdir, precision_of(plan, workdir)["choice"])
    context.progress, context.on_dev, context.stop = progress, on_dev, stop
    if isinstance(method, TrainedMethod):
        plan.team.from_main(cell.id)  # the other processes take part
    else:
        context.team = ALONE
    started, worked = time.perf_counter(), time.process_time()
    with context.team.failing_together():
        method.fit(plan.corpus(cell.row), context)
    if not cell.row.trained:
        return method
    _count_seconds(method.fit_report.cost, time.perf_counter() - started, time.process_time() - worked)
    if plan.device.startswith("cuda"):  # held for that long, busy or not, as clusters count it
        method.fit_report.cost["train_gpu_seconds"] = context.team.size * method.fit_report.cost["train_seconds"]
    precision = str(method.fit_report.training.get("precision", "fp32"))
    method.fit_report.cost |= utilisation(method.fit_report.cost, workdir, plan.device, precision, context.team.size)
    label, base = markdown_text(cell.row.label), markdown_text(cell.base_model)
    card = f"{label}: trained by `{method.name}` from {base}, seed {seed_text(cell.seed)}.\n"
    keep(method, folder, card)
    loaded = type(method).load(folder.model)
    loaded.fit_report = method.fit_report
    return loaded


def _count_seconds(cost: dict[str, float], wall: float, processor: float) -> None:
    """Enter what a fit took, where the method has not said it; processor time only of a fit that was not resumed."""
    cost.setdefault("train_seconds", wall)
    if wall >= cost["train_seconds"]:
        cost.setdefault("train_cpu_seconds", processor)


def _conditions(cell: PlannedCell, plan: Plan, workdir: Path, precision: str) -> FitContext:
    return FitContext(
        seed=cell.seed,
        dev=plan.dev,
        device=plan.device,
        precision=precision,
        folder=RunFolder(workdir, cell.id).path,
        max_steps=cell.row.max_steps,
        team=plan.team,
    )


def take_part(plan: Plan, workdir: Path) -> None:
    """What the processes beside the main one do in a comparison: train along, cell by cell, until it says the last.

    A fit that ends badly in all of them is the main process's to record.
    """
    cells = {cell.id: cell for cell in plan.cells}
    while asked := plan.team.from_main(""):
        cell = cells[asked]
        method = cell.row.method(cell.row.config, base_model=cell.base_model)
        context = _conditions(cell, plan, workdir, "fp32")  # the main process's precision is what counts
        with suppress(Exception), plan.team.failing_together():
            method.fit(plan.corpus(cell.row), context)


def _evaluate(
    method: Method,
    tasks: list[Task],
    plan: Plan,
    progress: Progress | None,
    stop: Callable[[], bool] | None,
    cache: EmbeddingCache,
    content: str,
) -> TaskResult:
    """Scores of a fitted method; `content` identifies its weights in `cache`."""
    from harness.evaluation.scoring import evaluate, joined
    from harness.tasks.vectors import Origin

    device = plan.device

    def encoder_of(fitted: Method) -> Callable[[list[str]], Any]:
        def encode(texts: list[str]) -> Any:
            if stop is not None and stop():
                raise StopAsked
            if progress:
                progress(0, 0, f"encoding {len(texts):,} sentences")
            return fitted.encode(texts, device=device)

        return encode

    pooling = method.config.pooling
    if not method.transductive:
        stored = cache.of(content, pooling, code=code_ids(type(method))[0], device=plan.device_name)
        origin = Origin(f"harness/{method.name}", stored.name, results=cache.folder.parent / "mteb")
        return evaluate(
            encoder_of(method),
            tasks,
            pooling=pooling,
            cache=stored,
            origin=origin,
            model=method,
            device=device,
            most=plan.most,
            prompts=method.prompts,
        )

    def alone(task: Task) -> TaskResult:
        fitted = method.for_task(task.texts())
        how = f"{pooling}, fitted to the task's text"
        return evaluate(encoder_of(fitted), [task], pooling=how, model=fitted, device=device)

    readable, unread = each(tasks, lambda task: announced(task, plan.most))
    parts, unscored = each([task for task, _ in readable], alone)
    result = joined([part for _, part in parts])
    set_aside(result, unread, unscored)
    return result
