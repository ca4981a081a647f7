"""`--rehearse=full-size`: every row at its true size for two updates; what that says of the whole file, kept."""

from __future__ import annotations

import gc
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.comparison.estimate import looks, texts_of
from harness.comparison.experiment import Rehearsal
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.rehearsal import StandIns
from harness.comparison.rows import Row
from harness.comparison.timed_updates import row_key
from harness.errors import TrainingStopped
from harness.files.atomic import write_atomic
from harness.files.redaction import redacted
from harness.machine.environment import peak_memory_bytes, reset_peak_memory
from harness.method import FitContext
from harness.sources import Corpus

log = logging.getLogger(__name__)

UPDATES = 2
_TEXTS = 64  # sentences that are encoded for the speed of an evaluation
_ENDED = "the process ended while this row was measured, for want of memory more often than not"


@dataclass(frozen=True)
class Measured:
    """One row on one base model, at its true size on this machine.

    Attributes:
        update: seconds of an update, the first one among them; 0 for methods that make none.
        setup: seconds of the rest of the fit, loading above all.
        item: seconds for each text of the corpus, of a method that makes no updates.
        text: seconds to encode a sentence of the tasks.
        memory: peak in bytes, of the GPU where there is one.
        fault: why it could not be measured.
    """

    update: float = 0.0
    setup: float = 0.0
    item: float = 0.0
    text: float = 0.0
    memory: int = 0
    fault: str = ""

    def seconds(self, cell: PlannedCell, plan: Plan, steps: int) -> float:
        """Seconds of one run: its fit on the whole corpus, its evaluations on the dev set, and encoding for the tasks.

        What the tasks do with the vectors, such as fitting classifiers, is not in it.
        """
        corpus, row = plan.corpus(cell.row), cell.row
        sentences = len(texts_of(plan, cell))
        if steps and plan.dev is not None and (every := getattr(row.config, "eval_every", None)):
            sentences += looks(steps, every) * len(set(plan.dev.texts()))
        return self.setup + self.item * len(corpus or ()) + self.update * steps + self.text * sentences


class Measurements:
    """`WORKDIR/full-size.json`: what was measured, by row, base model by content, and device."""

    def __init__(self, workdir: Path) -> None:
        self.file = workdir / "full-size.json"
        self._known: dict[str, dict[str, Any]] = {}
        try:
            known = json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}
            self._known = {key: asdict(Measured(**one)) for key, one in known.items()}
        except (ValueError, TypeError, AttributeError):
            log.warning("%s: damaged; its rows are measured again", self.file)

    def of(self, cell: PlannedCell, plan: Plan) -> Measured | None:
        """What is known of the row of a cell on its base model."""
        one = self._known.get(_key(cell, plan))
        return Measured(**one) if one is not None else None

    def keep(self, cell: PlannedCell, plan: Plan, measured: Measured) -> None:
        """Write what was measured."""
        self._known[_key(cell, plan)] = asdict(measured)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self.file, json.dumps(self._known, indent=1) + "\n")


def _key(cell: PlannedCell, plan: Plan) -> str:
    named = cell.fault or cell.base_model != cell.row.base_model  # by its name alone
    return row_key(cell.row, plan.device_name, plan.experiment.precision, cell.base_model if named else None)


def one_a_row(plan: Plan) -> list[PlannedCell]:
    """The first cell of each row on each base model: its seeds differ in nothing that is measured."""
    return list({(cell.row.label, cell.base_model): cell for cell in reversed(plan.cells)}.values())[::-1]


def measure(plan: Plan, workdir: Path) -> Iterator[tuple[PlannedCell, Measured, bool]]:
    """Every row on every base model with what was measured, now or earlier (then the third part is true).

    A row during which an earlier process ended is told so, and not tried again: delete `full-size.json` to try.
    """
    known = Measurements(workdir)
    for cell in one_a_row(plan):
        measured = known.of(cell, plan)
        kept = measured is not None
        if cell.fault:
            measured, kept = Measured(fault=cell.fault), False
        elif measured is None or measured.fault not in ("", _ENDED):
            known.keep(cell, plan, Measured(fault=_ENDED))  # stands where this process is killed
            measured, kept = _measured(cell, plan), False
            known.keep(cell, plan, measured)
        yield cell, measured, kept


def _measured(cell: PlannedCell, plan: Plan) -> Measured:
    """Two updates and some encoding; nothing of it is kept."""
    row = cell.row
    items = max(256, (UPDATES + 1) * int(getattr(row.config, "batch_size", 0)))
    corpus, more = (_beginning(row, count) for count in (items, 2 * items))
    method = row.method(row.config, base_model=row.base_model)
    gc.collect()
    reset_peak_memory(plan.device)
    try:
        started = time.perf_counter()
        context = FitContext(seed=cell.seed, device=plan.device, precision=plan.experiment.precision, max_steps=UPDATES)
        method.fit(corpus, context)
        fit = time.perf_counter() - started
        steps = int(method.fit_report.training.get("steps", 0))
        training = float(method.fit_report.cost.get("train_seconds", 0.0)) if steps else 0.0
        item = 0.0
        if corpus is not None and more is not None and not steps and len(more) > len(corpus):
            started = time.perf_counter()  # again on twice the text: what the rest of it costs
            method.fit(more, context)
            item = max(0.0, time.perf_counter() - started - fit) / (len(more) - len(corpus))
        texts = list(texts_of(plan, cell))[:_TEXTS] or [str(text) for text in (corpus or ["A sentence."])[:_TEXTS]]
        fitted = method.for_task(texts) if method.transductive else method
        started = time.perf_counter()
        fitted.encode(texts, device=plan.device)
        text = (time.perf_counter() - started) / len(texts)
    except TrainingStopped as stop:
        return Measured(memory=peak_memory_bytes(plan.device), fault=f"{stop.status}: {stop.reason}")
    except Exception as error:  # out of memory above all: it is this row's, and the next one is tried
        said = redacted(str(error)).splitlines() or [""]
        return Measured(memory=peak_memory_bytes(plan.device), fault=f"{type(error).__name__}: {said[0]}")
    update, memory = training / steps if steps else 0.0, peak_memory_bytes(plan.device)
    return Measured(update, fit - training, item, text, memory)


def _beginning(row: Row, count: int) -> Corpus | None:
    """So much of the text of a row, or of what stands in for it."""
    return StandIns(Rehearsal(limit=count)).corpus(row.corpus) if row.corpus is not None else None
