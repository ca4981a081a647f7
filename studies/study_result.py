"""A study from Python: `harness.study`, and what it gives back."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.results import frames
from harness.results.record import Record
from harness.results.report_builder import WithReport
from harness.results.run_folder import RunFolder, checked_workdir
from studies.run.trial_result import result_of
from studies.study_api import PlannedStudy, StoredStudy, export_study, plan_study, run_study

if TYPE_CHECKING:
    import pandas as pd


class FinishedStudy(WithReport):
    """See `harness.results.study_result.StudyResult`.

    Attributes:
        opened: the study in its storage. files: the folder of its tables and figures.
    """

    def __init__(self, opened: StoredStudy, files: Path) -> None:
        self.opened, self.files = opened, files
        self.name, self.workdir = opened.study.name, opened.workdir

    def __repr__(self) -> str:
        return f"FinishedStudy({self.name!r}, {len(self.opened.trials)} trials, workdir={str(self.workdir)!r})"

    @property
    def best(self) -> dict[str, Any]:
        from studies.show.export import best_config

        return best_config(self.opened.stored, self.opened.study)

    @property
    def failed(self) -> list[int]:
        return [trial.number for trial in self.opened.failed]

    def trials(self) -> pd.DataFrame:
        import pandas as pd

        from studies.show.findings import trials_sheet

        sheet = trials_sheet(self.opened.study, self.opened.space, self.opened.trials)
        return pd.DataFrame(list(sheet.rows), columns=list(sheet.columns))

    @cached_property
    def _records(self) -> dict[str, tuple[int, Record]]:
        """Run -> the first trial that it belongs to, and its record."""
        found: dict[str, tuple[int, Record]] = {}
        for trial in self.opened.trials:
            for run in result_of(trial).runs:
                record = RunFolder(self.workdir, run).read_if_sound()
                if record is not None:
                    found.setdefault(run, (trial.number, record))
        return found

    def scores(self) -> pd.DataFrame:
        return frames.scores(record for _, record in self._records.values())

    def curves(self) -> pd.DataFrame:
        frame = frames.curves(self.workdir, [record for _, record in self._records.values()])
        frame.insert(0, "trial", [self._records[run][0] for run in frame["run"]])
        return frame

    def costs(self) -> pd.DataFrame:
        return frames.costs(record for _, record in self._records.values())

    def experiment(self, *, held_out: bool = False, default: bool = False) -> dict[str, Any]:
        from studies.show.export import experiment_file

        study = self.opened.study
        seeds = study.held_out_seeds if held_out else study.seeds
        keys = tomllib.loads(experiment_file(self.opened.stored, study, seeds))
        if default:
            row = {"name": f"{study.method} (default)", "method": study.method, "config": dict(study.config)}
            keys["methods"].append(row | ({"preset": study.preset} if study.preset else {}))
        return keys

    def _repr_html_(self) -> str:
        """The best trials."""
        frame = self.trials()
        names = [*self.opened.space.names, *frame.columns[1 + len(self.opened.space.names) :][:1]]
        up = self.opened.study.signs[0] == "minimize"
        shown: str = frame.sort_values(names[-1], ascending=up).head(5)[["trial", *names]].to_html(index=False)
        return f"<p>{escape(repr(self))}</p>{shown}"


def study(
    source: str | Path | Mapping[str, Any],
    workdir: str | Path = "work",
    *,
    overrides: Sequence[str] = (),
    quick: bool = False,
    name: str | None = None,
    storage: str | None = None,
    planned: Callable[[PlannedStudy], None] | None = None,
    **running: Any,
) -> FinishedStudy:
    """See `harness.study`; `running` is what `run_study` takes besides.

    Args:
        planned: called with the study before its first trial.
    """
    plan = plan_study(source if isinstance(source, Mapping) else str(source), overrides, quick=quick, name=name)
    folder = checked_workdir(str(workdir))
    if planned is not None:
        planned(plan)
    ended = run_study(plan, folder, storage=storage, **running)
    return FinishedStudy(ended, export_study(ended, storage=storage))
