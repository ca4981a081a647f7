"""What a search gives to who called it, whoever brings it (entry points `harness.studies`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness.results.report_builder import OpenReport

if TYPE_CHECKING:
    import pandas as pd


class StudyResult(OpenReport, Protocol):
    """A search with the trials that have ended, and its report. In a notebook it shows its best trials.

    >>> search.name, search.failed
    ('share', [])
    >>> search.trials()[["trial", "k"]].shape
    (2, 2)
    >>> search.experiment()["methods"][0]["method"]
    'whitening'
    """

    @property
    def name(self) -> str:
        """What its files are called by."""

    @property
    def workdir(self) -> Path:
        """Everything that is kept."""

    @property
    def best(self) -> dict[str, Any]:
        """The config of the best trial: what the study fixes, and the values that were found."""

    @property
    def failed(self) -> list[int]:
        """Numbers of the trials without a result; the same call tries their places again."""

    @property
    def files(self) -> Path:
        """The folder of its tables, figures and experiment files."""

    def trials(self) -> pd.DataFrame:
        """One row a trial: configuration, objectives (correlations, not times 100), state, seeds, seconds, runs."""

    def scores(self) -> pd.DataFrame:
        """One row a score of a run; columns: `harness.results.frames.SCORES`."""

    def curves(self) -> pd.DataFrame:
        """One row a number of the training log of a run; columns: `harness.results.frames.CURVES`, and "trial"."""

    def costs(self) -> pd.DataFrame:
        """One row a run with what it took; columns: `harness.results.frames.COSTS`."""

    def experiment(self, *, held_out: bool = False, default: bool = False) -> dict[str, Any]:
        """An experiment for `harness.compare` with the best configuration; nothing is trained again for it.

        Args:
            held_out: with the seeds that chose nothing: these are trained.
            default: a second row has the method as the study's preset and config leave it.
        """
