"""What a comparison and a study share from Python: a report of their records."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas.io.formats.style import Styler


class WithReport:
    """What has a report, which is built from its records when the first table or figure is requested.

    Attributes:
        name: what the report is called. workdir: where its records are.
    """

    name: str
    workdir: Path

    @cached_property
    def _report(self) -> Any:
        from reports.build import open_report

        return open_report(self.name, self.workdir)

    @property
    def tables(self) -> dict[str, str]:
        """Key -> title of the tables of the report."""
        return self._report.tables  # type: ignore[no-any-return]

    @property
    def plots(self) -> dict[str, str]:
        """Key -> title of the figures of the report."""
        return self._report.plots  # type: ignore[no-any-return]

    def table(self, name: str) -> Styler:
        """A table of the report, as a pandas Styler: `.to_latex()` is as in the report, `.data` is what it shows.

        Args:
            name: its key (`tables`), or words of key and title: "sts", "seeds", "cost". The first that has them.

        Raises:
            InputError: no such table.
        """
        return self._report.table(name)  # type: ignore[no-any-return]

    def plot(self, name: str) -> Figure:
        """A figure of the report, as matplotlib has it; `name` as in `table`: "alignment-uniformity", "cost".

        Raises:
            InputError: no such figure.
        """
        return self._report.plot(name)  # type: ignore[no-any-return]
