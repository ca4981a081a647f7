"""What encoding costs each architecture that a work directory has met: `WORKDIR/inference.json`."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import InputError
from harness.files.atomic import sweep, write_atomic
from harness.files.hashing import content_id
from harness.files.reading import read_json

log = logging.getLogger(__name__)

PROCESSOR, WALL = "processor", "wall"


class InferenceCost(BaseModel):
    """Passes over the same sentences with one architecture under one set of conditions.

    Attributes:
        device: as `environment.device_name` of a record. threads: of the processor.
        clock: "processor": seconds of processor time, all threads together; "wall": of a GPU that has finished.
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
        """What passes of it are gathered by."""
        return content_id(self.model_dump(exclude={"seconds"}))


def inference_file(workdir: Path) -> Path:
    """Where they are kept."""
    return workdir / "inference.json"


def read_inference(workdir: Path) -> dict[str, InferenceCost]:
    """All that was measured, by key; what is damaged is measured again."""
    file = inference_file(workdir)
    if not file.is_file():
        return {}
    try:
        return {key: InferenceCost.model_validate(one) for key, one in read_json(file).items()}
    except (InputError, ValidationError):
        log.warning("%s: damaged; the cost of inference is measured again", file)
        return {}


def add_passes(workdir: Path, measured: InferenceCost) -> None:
    """Keep further passes of an architecture, beside those that are there."""
    from filelock import FileLock

    with FileLock(workdir / ".inference.lock"):  # another comparison may be measuring here
        known: dict[str, Any] = read_inference(workdir)
        earlier = known[measured.key].seconds if measured.key in known else []
        known[measured.key] = measured.model_copy(update={"seconds": [*earlier, *measured.seconds]})
        sweep(inference_file(workdir))
        tree = {key: one.model_dump() for key, one in known.items()}
        write_atomic(inference_file(workdir), json.dumps(tree, indent=1) + "\n")
