"""Seconds of an update, measured once for each row and base model, and kept: what a budget of time is counted in.

Processor time on a CPU, so that what else the machine does counts little; on a GPU the time until it has done its work.
Evaluations on the dev set and the loading of models and text are not in it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.comparison.rows import Row
from harness.comparison.run_length import lengthened
from harness.errors import InputError, RunError, TrainingStopped
from harness.files.atomic import sweep, write_atomic
from harness.files.hashing import content_id
from harness.files.redaction import redacted
from harness.identity.models import model_fingerprint
from harness.machine.environment import device_name
from harness.method import FitContext

if TYPE_CHECKING:
    from harness.sources import Corpus

log = logging.getLogger(__name__)

FILE, LOCK = "budget.json", ".budget.json.lock"
_UNTIMED = 2  # the first updates pay for setting up
_FEWEST, _MOST, _SECONDS = 4, 48, 5.0  # so many updates are timed: at least, at most, and until so much time has passed


class TimedUpdates:
    """`WORKDIR/budget.json`: seconds of an update by row, base model by content, precision and device.

    Args:
        workdir: None keeps nothing.
        device: as torch names it.
        named: whose seconds are asked for; those of `device` where it is empty.
        say: called with a line on each row that is measured.
    """

    def __init__(
        self, workdir: Path | None, device: str, named: str | None = None, say: Callable[[str], None] | None = None
    ) -> None:
        self.file = workdir / FILE if workdir is not None else None
        self.device = device
        self.name = named or device_name(device)
        self.may_measure = self.name == device_name(device)
        self.say = say or (lambda line: None)

    def of(self, row: Row, corpus: Corpus, precision: str, epoch: int) -> float:
        """Seconds of an update of a row; `epoch` is how many of them a pass over the text has.

        Raises:
            InputError: they are those of another machine, and not kept here.
            RunError: the row cannot be trained.
        """
        key = row_key(row, self.name, precision)
        if (kept := self._kept().get(key)) is not None:
            return float(kept["seconds"])
        if not self.may_measure:
            raise InputError(
                f'budget: device "{self.name}": {self.file or FILE} holds no time of row "{row.label}" on it; measure '
                "there, or leave the key device out"
            )
        seconds = timed(row, corpus, self.device, precision, epoch)
        about = {"row": row.label, "method": row.method.name, "base_model": row.base_model, "device": self.name}
        entry = {**about, "clock": clock_of(self.device), "precision": precision, "seconds": seconds}
        self.say(f"{row.label} · {row.base_model}: {seconds:.3g} s of {entry['clock']} an update (measured)")
        return float(self._keep(key, entry)["seconds"])

    def _keep(self, key: str, entry: dict[str, Any]) -> dict[str, Any]:
        """What is kept from now on: what another process has measured meanwhile goes first."""
        if self.file is None:
            return entry
        from filelock import FileLock

        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.file.with_name(LOCK)):
                known = self._kept()
                kept: dict[str, Any] = known.setdefault(key, entry)
                sweep(self.file)
                write_atomic(self.file, json.dumps(known, indent=1) + "\n")
        except OSError as error:
            where = self.file.parent
            raise InputError(
                f"--workdir {where}: cannot be used ({error.strerror}); name a folder you can write"
            ) from None
        return kept

    def _kept(self) -> dict[str, Any]:
        return read(self.file) if self.file is not None else {}


def read(file: Path) -> dict[str, Any]:
    """Key of a row -> what was measured of it, as far as it was."""
    try:
        known = json.loads(file.read_text("utf-8")) if file.exists() else {}
        if isinstance(known, dict) and all(float(one["seconds"]) > 0 for one in known.values()):
            return known
    except (ValueError, TypeError, KeyError):
        pass
    log.warning("%s: damaged; the updates of a budget of time are measured again", file)
    return {}


def row_key(row: Row, device: str, precision: str, base_model: str | None = None) -> str:
    """What the time of an update depends on, hashed: one key for rows that differ in their names only.

    Args:
        base_model: instead of the content of the row's own.
    """
    return content_id(
        {
            "method": row.method.name,
            "config": row.config.for_id(),
            "model": base_model or model_fingerprint(row.base_model),
            "corpus": row.corpus.model_dump() if row.corpus is not None else None,
            "device": device,
            "precision": precision,
        }
    )


def clock_of(device: str) -> str:
    """What the seconds of a device are called."""
    return "processor time" if device.startswith("cpu") else "GPU time" if device.startswith("cuda") else "time"


def timed(row: Row, corpus: Corpus, device: str, precision: str, epoch: int) -> float:
    """Mean seconds of some updates after the first ones; nothing of them is kept.

    Raises:
        RunError: the row cannot be trained, for want of memory for example.
    """
    wanted = _UNTIMED + _MOST
    values = {"log_every": 1} if "log_every" in type(row.config).model_fields else {}
    config = lengthened(row.config, wanted, epoch).model_copy(update=values)
    now = _clock(device)
    stamps: list[float] = []

    def seen(step: int, steps: int, text: str) -> None:
        if step != len(stamps) + 1:  # what comes before the first update
            return
        stamps.append(now())
        timed_ones = len(stamps) - _UNTIMED
        if timed_ones >= _FEWEST and stamps[-1] - stamps[_UNTIMED - 1] >= _SECONDS:
            raise TrainingStopped("pruned", "measured")

    context = FitContext(device=device, precision=precision, max_steps=wanted, progress=seen)
    try:
        row.method(config, base_model=row.base_model).fit(corpus, context)
    except TrainingStopped as stop:
        if stop.status != "pruned":
            raise RunError(f'budget: row "{row.label}" cannot be timed: {stop.reason}') from None
    except (InputError, RunError):
        raise
    except Exception as error:  # of any library; out of memory above all
        said = (redacted(str(error)).splitlines() or [""])[0]
        raise RunError(f'budget: row "{row.label}" cannot be timed: {type(error).__name__}: {said}') from None
    if len(stamps) <= _UNTIMED:
        raise RunError(f'budget: row "{row.label}" cannot be timed: it tells of no updates')
    return (stamps[-1] - stamps[_UNTIMED - 1]) / (len(stamps) - _UNTIMED)


def _clock(device: str) -> Callable[[], float]:
    import torch

    if device.startswith("cpu"):
        return time.process_time

    def waited() -> float:
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)
        elif device.startswith("mps"):
            torch.mps.synchronize()
        return time.perf_counter()

    return waited
