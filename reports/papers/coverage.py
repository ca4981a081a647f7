"""Which row of which file makes each published number on public data, or why none can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.papers.column_tasks import column_tasks
from reports.papers.conditions import Conditions
from reports.papers.definition import Definition, PaperColumn, PaperRow
from reports.papers.matching import Matching, Place
from reports.papers.planned_runs import PlannedRun
from reports.papers.published_file import Published
from reports.read.run_library import RunLibrary

NO_FILE, NO_METHOD = "no file has it", "no method of ours"
NOT_YET = (NO_FILE, NO_METHOD)  # what somebody could still do


@dataclass(frozen=True)
class Source:
    """Where a published number comes from: a file, its blocks and rows; or, without a file, the reason.

    Attributes:
        remark: why our number cannot be held against the paper's, where its conditions are not known.
    """

    published: Published
    place: Place | None
    file: str = ""
    study: bool = False
    blocks: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    reason: str = ""
    remark: str = ""


def coverage(definition: Definition, runs: Sequence[PlannedRun]) -> list[Source]:
    """Each published number of a paper with its source, in the file's order. `runs`: those of the paper's own first."""
    return _Coverage(definition, runs).sources()


class _Coverage:
    def __init__(self, definition: Definition, runs: Sequence[PlannedRun]) -> None:
        self.matching = Matching(definition, RunLibrary(definition.folder, ()))
        self.conditions = Conditions(definition)
        self.runs = runs
        self._fitting: dict[tuple[int, str], list[PlannedRun]] = {}

    def sources(self) -> list[Source]:
        return [self._source(p) for p in self.matching.published]

    def _source(self, p: Published) -> Source:
        place = self.matching.place_of(p)
        if place is None:
            reason = self.matching.definition.statements.get(p["table"], "") or "it is in no table of the definition"
            return Source(p, None, reason=reason)
        found = self._made(place, place.row, place.column, p["base_model"])
        if not found:
            missing = NO_FILE if place.row.method else NO_METHOD
            return Source(p, place, reason=place.row.cannot or place.column.cannot or missing)
        remark = f"its {place.column.unstated} is not stated" if place.column.unstated else ""
        if place.column.delta and (other := self._reference_base(place, p["base_model"])) != p["base_model"]:
            remark = f"to the row on {other}, which reports do not subtract"
        own = [one for one in found if one[0].file == found[0][0].file]
        run, blocks = next((one for one in own if place.table.key in one[1]), own[0])  # the block of this very table
        return Source(p, place, run.file, run.study, blocks, (run.row.label,), remark=remark)

    def _made(
        self, place: Place, spec: PaperRow, column: PaperColumn, base: str
    ) -> list[tuple[PlannedRun, tuple[str, ...]]]:
        """The runs that make a number, with the blocks that they are evaluated on its tasks in."""
        if column.delta:
            whole = next(c for c in self.matching.columns(place.table) if c.title == column.delta)
            reference = place.table.reference_of(spec)
            own = self._made(place, spec, whole, base)
            if reference is None or reference is spec:
                return own
            return own if self._made(place, reference, whole, self._reference_base(place, base)) else []
        if not column.measured:
            return []
        needed = column_tasks(column)
        made: list[tuple[PlannedRun, tuple[str, ...]]] = []
        for run in self._of(spec, base):
            if column.statistic:
                dev = run.record.dev or {}
                if run.study and (dev.get("task"), dev.get("source")) == ("STS-B", column.source):
                    made.append((run, ()))
            elif needed <= frozenset().union(*run.tasks.values()):
                whole_blocks = [name for name, tasks in run.tasks.items() if needed <= tasks]
                partly = [name for name, tasks in run.tasks.items() if needed & tasks]
                made.append(
                    (run, (place.table.key,) if place.table.key in whole_blocks else tuple(whole_blocks[:1] or partly))
                )
        return made

    def _reference_base(self, place: Place, base: str) -> str:
        """The base model of the row that a difference goes to: a row's own, where the paper has the reference on it."""
        bases = self.matching.reference_bases(place)
        return base if base in bases or not bases else sorted(bases)[0]

    def _of(self, spec: PaperRow, base: str) -> list[PlannedRun]:
        """The planned runs that the definition would take for a published row on `base`."""
        if (id(spec), base) not in self._fitting:
            self._fitting[id(spec), base] = [
                run
                for run in self.runs
                if self.conditions.is_of(spec, run.record) and not self.conditions.obstacles(base, spec, run.row)
            ]
        return self._fitting[id(spec), base]
