"""What was measured on the machines of a work directory: `WORKDIR/measurements.json`.

Its table "inference" has the cost of encoding by architecture.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import InputError
from harness.files.atomic import sweep, write_atomic
from harness.files.hashing import content_id
from harness.files.reading import is_there, read_json

log = logging.getLogger(__name__)

PROCESSOR = "processor"
WALL = "wall"


def measurements_file(workdir: Path) -> Path:
    """Where they are stored."""
    return workdir / "measurements.json"


def read_measurements(workdir: Path) -> dict[str, dict[str, Any]]:
    """Table -> key -> measurement; a damaged file counts as empty, so that everything is measured
    again.
    """
    file = measurements_file(workdir)
    if not is_there(file) and not file.is_symlink():
        return {}
    try:
        tree = read_json(file)
        if all(isinstance(table, dict) for table in tree.values()):
            return tree
    except InputError:
        pass
    log.warning("%s: damaged; measuring again", file)
    return {}


def measure_once(
    workdir: Path,
    table: str,
    key: str,
    measure: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """The stored measurement, else what `measure` returns, which is then stored. Processes wait for
    each other.
    """
    known = read_measurements(workdir).get(table, {}).get(key)
    if known is None:
        from filelock import FileLock

        workdir.mkdir(parents=True, exist_ok=True)
        with FileLock(workdir / ".measurements.lock"):
            tree = read_measurements(workdir)
            known = tree.setdefault(table, {}).get(key) or measure()
            tree[table][key] = known
            sweep(measurements_file(workdir))
            text = json.dumps(tree, indent=1) + "\n"
            write_atomic(measurements_file(workdir), text)
    return known


class InferenceCost(BaseModel):
    """Passes over the same sentences with one architecture under one set of conditions.

    Attributes:
        device: as `environment.device_name` of a record. threads: of the processor.
        clock: "processor": seconds of processor time, all threads together; "wall": of a GPU that
            has finished.
        seconds: of each pass over `sentences`, from strings to vectors in main memory.
    """

    model_config = ConfigDict(frozen=True)

    architecture: str
    device: str
    threads: int
    precision: str
    clock: str
    sentences: int
    seconds: list[float]

    @property
    def key(self) -> str:
        """What its passes are stored under."""
        return content_id(self.model_dump(exclude={"seconds"}))


def read_inference(workdir: Path) -> dict[str, InferenceCost]:
    """The measured costs of inference by key; damaged ones are left out."""
    found = {}
    for key, one in read_measurements(workdir).get("inference", {}).items():
        with suppress(ValidationError):
            found[key] = InferenceCost.model_validate(one)
    return found
