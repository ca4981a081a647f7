"""`--rehearse=full-size`: every row at its true size for two updates; what that says of the whole file, kept."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.comparison.estimate import looks, texts_of
from harness.comparison.larger_than_memory import measured_or_extrapolated
from harness.comparison.measured_precision import precision_of
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.timed_updates import row_key
from harness.comparison.two_updates import Measured, Probe
from harness.files.atomic import write_atomic

log = logging.getLogger(__name__)

_TEXTS = 256  # sentences at most that are encoded for the speed of an evaluation


def seconds_of(measured: Measured, cell: PlannedCell, plan: Plan, steps: int, *, scored: bool = True) -> float:
    """Seconds of one run: its fit on the whole corpus, its evaluations on the dev set, and encoding for the tasks.

    What the tasks do with the vectors is not in it, see `harness.comparison.scoring_time`. `scored`: False for a trial
    of a search, which meets its dev set alone.
    """
    corpus, row = plan.corpus(cell.row), cell.row
    sentences = len(texts_of(plan, cell)) if scored else 0
    if steps and plan.dev is not None and (every := getattr(row.config, "eval_every", None)):
        sentences += looks(steps, every) * len(set(plan.dev.texts()))
    return measured.setup + measured.item * len(corpus or ()) + measured.update * steps + measured.text * sentences


class Measurements:
    """`WORKDIR/full-size.json`: what was measured, by row, base model by content, and device."""

    def __init__(self, workdir: Path) -> None:
        self.file = workdir / "full-size.json"
        self._known: dict[str, dict[str, Any]] = {}
        try:
            known = json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}
            self._known = {key: dict(one) for key, one in known.items()}
            for one in self._known.values():
                _read(one)
        except (ValueError, TypeError, AttributeError):
            log.warning("%s: damaged; its rows are measured again", self.file)
            self._known = {}

    def of(self, cell: PlannedCell, plan: Plan) -> Measured | None:
        """What is known of the row of a cell on its base model."""
        one = self._known.get(_key(cell, plan))
        return _read(one) if one is not None else None

    def keep(self, cell: PlannedCell, plan: Plan, measured: Measured) -> None:
        """Write what was measured, with the names of row and base model for who reads the file."""
        names = {"row": cell.row.label, "base_model": cell.base_model}
        self._known[_key(cell, plan)] = {**names, **asdict(measured)}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self.file, json.dumps(self._known, indent=1) + "\n")


def _read(one: dict[str, Any]) -> Measured:
    values = {key: value for key, value in one.items() if key not in ("row", "base_model")}
    return Measured(**{**values, "batches": tuple(values.get("batches", ()))})


def _key(cell: PlannedCell, plan: Plan) -> str:
    named = cell.fault or cell.base_model != cell.row.base_model  # by its name alone
    return row_key(cell.row, plan.device_name, plan.experiment.precision, cell.base_model if named else None)


def one_a_row(plan: Plan) -> list[PlannedCell]:
    """The first cell of each row on each base model: its seeds differ in nothing that is measured."""
    return list({(cell.row.label, cell.base_model): cell for cell in reversed(plan.cells)}.values())[::-1]


def measure(plan: Plan, workdir: Path) -> Iterator[tuple[PlannedCell, Measured, bool]]:
    """Every row on every base model with what was measured, now or earlier (then the third part is true).

    What could not be measured earlier is tried again.
    """
    known = Measurements(workdir)
    for cell in one_a_row(plan):
        measured = known.of(cell, plan)
        kept = measured is not None and not measured.fault
        if cell.fault:
            measured = Measured(fault=cell.fault)
        elif measured is None or measured.fault:
            measured = measured_or_extrapolated(_probe(cell, plan, workdir))
            known.keep(cell, plan, measured)
        yield cell, measured, kept


def _probe(cell: PlannedCell, plan: Plan, workdir: Path) -> Probe:
    row = cell.row
    workdir.mkdir(parents=True, exist_ok=True)
    return Probe(
        method=row.method,
        config=row.config,
        base_model=row.base_model,
        corpus=row.corpus,
        seed=cell.seed,
        device=plan.device,
        precision=precision_of(plan, workdir)["choice"],
        texts=tuple(texts_of(plan, cell)[:_TEXTS]),
    )
