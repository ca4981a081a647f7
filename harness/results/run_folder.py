"""The folder of one run: its record, pairs, outcomes, figures, curves, checkpoint and model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.files.config_faults import first_fault
from harness.files.locks import LOCK_FILE
from harness.files.names import name_fault
from harness.files.reading import read_bytes, read_json, read_text
from harness.results.facts import Facts, facts_of

if TYPE_CHECKING:
    import pandas as pd
from harness.results.record import Record


class DamagedRecord(InputError):  # noqa: N818 - says what it is
    """A record that is there and cannot be read: a file cut or changed, not one of a later version."""


class RunFolder:
    """The folder of one run.

    Raises:
        InputError: an id (of a manifest, a study or a tracking store) that can be no folder's name.
    """

    def __init__(self, workdir: Path, run_id: str) -> None:
        if fault := name_fault(run_id):
            raise InputError(f"id of a run: {fault}")
        self.path = workdir / "runs" / run_id

    @property
    def record_file(self) -> Path:
        return self.path / "record.json"

    @property
    def pairs_file(self) -> Path:
        return self.path / "pairs.parquet"

    @property
    def outcomes_file(self) -> Path:
        return self.path / "outcomes.parquet"

    @property
    def sample_file(self) -> Path:
        """A few of the vectors that it was scored by: `harness.results.vector_samples`."""
        return self.path / "sample.parquet"

    @property
    def figures_file(self) -> Path:
        """What is drawn rather than tabled, by task: spectra, histograms (`TaskResult.figures`)."""
        return self.path / "figures.json"

    @property
    def curves_file(self) -> Path:
        return self.path / "curves.jsonl"

    @property
    def fitted_file(self) -> Path:
        """What the fit said, and the hashes of the weights that it gave; written when those are safe on the disk."""
        return self.path / "fitted.json"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def model(self) -> Path:
        return self.path / "model"

    def read(self) -> Record | None:
        """The record, or None when the run has not been finished.

        Raises:
            DamagedRecord: the file is there but damaged. InputError: it cannot be read, or a later version wrote it.
        """
        if not self.record_file.exists() and not self.record_file.is_symlink():
            return None
        try:
            if self.record_file.is_dir():
                raise self._damaged("it is a folder")
            if not self.record_file.exists():
                raise self._damaged("it is a link that leads nowhere")
            return Record.model_validate_json(read_bytes(self.record_file))
        except ValidationError as error:
            raise self._damaged(first_fault(error)) from None

    def _damaged(self, what: str) -> DamagedRecord:
        return DamagedRecord(
            f"{self.record_file}: damaged record ({what}); `harness compare` makes it anew from the weights that are "
            "kept beside it; elsewhere leave it out by removing this one file"
        )

    def read_if_sound(self) -> Record | None:
        """As `read`; None also for a damaged record."""
        try:
            return self.read()
        except DamagedRecord:
            return None

    def put_damaged_record_aside(self) -> str | None:
        """Rename a damaged record, so that a new one can be written; what was wrong with it, None for a sound one."""
        try:
            self.read()
        except DamagedRecord as error:
            aside = self.record_file.with_name(f"{self.record_file.name}.damaged")
            if aside.is_dir() and not aside.is_symlink():
                shutil.rmtree(aside)
            aside.unlink(missing_ok=True)
            self.record_file.replace(aside)
            return str(error).partition(";")[0]
        return None

    def write(self, record: Record) -> None:
        write_atomic(self.record_file, record.model_dump_json(indent=1) + "\n")

    def discard_weights(self) -> None:
        """Remove saved weights that are damaged, whatever stands in their place. Its lock must be held."""
        for path in (self.fitted_file, self.model):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what kills left: files and models that were being written. Its lock must be held."""
        for left in self.leftovers():
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)

    def leftovers(self) -> list[Path]:
        """Files and folders with the names of those that are being written."""
        places = (self.path, *self.path.glob("checkpoint"), *self.path.glob("*/checkpoint"))
        return [left for place in places for left in place.glob(".*") if left.name != LOCK_FILE]

    def pairs(self) -> pd.DataFrame:
        """Per-pair scores: columns task, source, split, subset, pair, gold, score (cosine), text1, text2
        (`harness.results.text_ids`; files of earlier versions lack these two)."""
        import pandas as pd

        return pd.read_parquet(self.pairs_file)

    def outcomes(self) -> pd.DataFrame:
        """Per-example outcomes: `harness.results.outcomes.COLUMNS`; no rows where the run stored none."""
        import pandas as pd

        from harness.results.outcomes import COLUMNS

        if not self.outcomes_file.exists():
            return pd.DataFrame(columns=list(COLUMNS))
        return pd.read_parquet(self.outcomes_file)

    def sample(self) -> pd.DataFrame:
        """The kept vectors; no rows where an earlier version stored none."""
        import pandas as pd

        from harness.results.vector_samples import COLUMNS

        if not self.sample_file.exists():
            return pd.DataFrame(columns=list(COLUMNS))
        return pd.read_parquet(self.sample_file)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Data for figures by task; empty where no task had any.

        Raises:
            InputError: the file is there but cannot be read, or is damaged.
        """
        return read_json(self.figures_file) if self.figures_file.exists() else {}

    def facts(self) -> dict[str, Facts]:
        """What else a reader has to know, by task; of tasks whose scores an earlier version made there are none.

        Raises:
            InputError: as `figures`.
        """
        try:
            return facts_of(self.figures())
        except (TypeError, AttributeError):
            raise InputError(f"{self.figures_file}: damaged facts; leave them out by removing this one file") from None

    def is_readable(self) -> bool:
        """Are pairs, outcomes and figures whole, where there are any?"""
        try:
            if self.pairs_file.exists():
                self.pairs()
            self.outcomes()
            self.figures()
        except (OSError, ValueError, InputError):  # pyarrow's errors are among the latter
            return False
        return True

    def curves(self) -> list[dict[str, Any]]:
        """Training log: one dict a line with "step", "kind" ("train", "dev", or "early": as "dev", for the
        collapse guard alone) and named numbers.

        Raises:
            InputError: the file is there but cannot be read, or is damaged.
        """
        if not self.curves_file.exists():
            return []
        try:
            lines = [json.loads(line) for line in read_text(self.curves_file).splitlines() if line]
            whole = all(isinstance(line["step"], int) and isinstance(line["kind"], str) for line in lines)
        except (ValueError, TypeError, KeyError, RecursionError):
            whole = False
        if not whole:
            raise InputError(f"{self.curves_file}: damaged training curve; leave it out by removing this one file")
        return lines


def checked_workdir(path: str, *, create: bool = True) -> Path:
    """The work directory, made if need be (not for a dry run).

    Raises:
        InputError: it cannot be made or written.
    """
    workdir = Path(path)
    if not create:
        return workdir
    try:
        (workdir / "runs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--workdir {path}: cannot be used ({error.strerror}); name a folder you can write") from None
    return workdir
