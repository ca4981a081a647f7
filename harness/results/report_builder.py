"""The way from records to a report: a plugin's, entry point `comparison` of `harness.reporters`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness import registry
from harness.errors import InputError
from harness.results.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas.io.formats.style import Styler

BUILDER = "comparison"
FORMATS = ("html", "md", "latex", "csv")  # those that are written unless others are asked for


class OpenReport(Protocol):
    """A report that is looked at piece by piece, and not written."""

    @property
    def tables(self) -> dict[str, str]:
        """Key -> title of the tables of the report."""

    @property
    def plots(self) -> dict[str, str]:
        """Key -> title of the figures of the report."""

    def table(self, name: str) -> Styler:
        """A table of the report: drawn by a notebook; `.to_latex()` is as the report has it, `.data` what it shows.

        Args:
            name: its key (`tables`), or words of key and title: "sts", "seeds", "cost". The first that has them.

        Raises:
            InputError: none has.
        """

    def plot(self, name: str) -> Figure:
        """A figure of the report as matplotlib has it; `name` as in `table`: "alignment-uniformity", "cost".

        Raises:
            InputError: no such figure.
        """


class WithReport(OpenReport):
    """What has a report: opened from its records when the first of its pieces is asked for.

    Attributes:
        name: what the report is called. workdir: where its records are.
    """

    name: str
    workdir: Path

    @cached_property
    def _open(self) -> OpenReport:
        return installed_builder().open_report(self.name, self.workdir)

    @property
    def tables(self) -> dict[str, str]:
        return self._open.tables

    @property
    def plots(self) -> dict[str, str]:
        return self._open.plots

    def table(self, name: str) -> Styler:
        return self._open.table(name)

    def plot(self, name: str) -> Figure:
        return self._open.plot(name)


class ReportBuilder(Protocol):
    """What the entry point names: a module or an object with these functions."""

    def build_report(
        self, name: str, workdir: Path, *, formats: Sequence[str] = ..., out: Path | None = None
    ) -> dict[str, Path]:
        """Write the report called `name` (a paper's, a comparison's, ...) to `out`; format -> what was written."""

    def build_comparison(
        self, workdir: Path, name: str, *, formats: Sequence[str] = ..., out: Path | None = None
    ) -> dict[str, Path]:
        """Write the report of the comparison `name`, as `build_report` does."""

    def summary_table(
        self, workdir: Path, name: str, part: str = ...
    ) -> tuple[list[str], list[list[str]]] | tuple[list[str], list[list[str]], list[str]]:
        """Columns and rows of text: the comparison, or one block of its file, as a terminal shows it; and, where there
        are marks in them, what these mean."""

    def open_report(self, name: str, workdir: Path) -> OpenReport:
        """The report that `build_report` would write, to look at."""

    def verdict(
        self,
        workdir: Path,
        rows: Sequence[str],
        *,
        on: str = ...,
        block: str = ...,
        comparison: str = ...,
        base_model: str = ...,
        equivalence: float = ...,
        without_overlap: bool = ...,
    ) -> Answer:
        """Which of two rows is better and how sure that is; of no rows, all pairs."""

    def power(
        self,
        workdir: Path | None,
        *,
        difference: float | None = ...,
        on: str = ...,
        block: str = ...,
        comparison: str = ...,
        sd: float | None = ...,
        pairs_sd: float | None = ...,
        rows: int | None = ...,
        correlation: float = ...,
    ) -> Answer:
        """What differences a number of seeds can see, and how many seeds `difference` takes."""


def report_builder() -> ReportBuilder | None:
    """The installed one, or None."""
    if BUILDER not in registry.names(registry.REPORTERS):
        return None
    builder: ReportBuilder = registry.load(registry.REPORTERS, BUILDER)
    return builder


def installed_builder() -> ReportBuilder:
    """The installed one.

    Raises:
        InputError: there is none.
    """
    builder = report_builder()
    if builder is None:
        raise InputError(f'no reporter is installed (entry point "{BUILDER}" of {registry.REPORTERS.entry_points})')
    return builder
