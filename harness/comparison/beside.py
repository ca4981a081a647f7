"""Rows that were made elsewhere, set beside those of a comparison: which of them may stand there, and why others not.

Nothing of them is trained or scored here. A row may stand beside where it was made under the same conditions: base
model, text, number of updates, selection set, and code that still gives these numbers. Of its scores those stand whose
protocol is that of the comparison's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from harness import registry
from harness.comparison.plan import Plan, PlannedCell
from harness.comparison.row_facts import of_plan
from harness.errors import InputError
from harness.files.printable import one_line
from harness.identity.code import code_ids
from harness.results.elsewhere import name_of, opened
from harness.results.manifest import asked, manifest_files, read_manifest, read_records
from harness.results.merging import take_run
from harness.results.record import Record, Score
from harness.results.run_folder import RunFolder

_NAMED = 5  # rows that a line names


@dataclass(frozen=True)
class OtherRow:
    """A row of another work directory that stands beside: its label here, its runs, and their cells of the manifest."""

    source: str
    label: str
    records: tuple[Record, ...]
    cells: tuple[Mapping[str, Any], ...]
    tasks: tuple[str, ...]  # "SOURCE:TASK"


@dataclass
class Beside:
    """Attributes:
    rows: those that may stand beside.
    left_out: (source, row, why) of the others.
    """

    rows: list[OtherRow] = field(default_factory=list)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)

    def told(self) -> Iterator[str]:
        """Lines for the reader: how many rows of each source, and which do not stand beside, by reason."""
        for source in dict.fromkeys([row.source for row in self.rows] + [source for source, _, _ in self.left_out]):
            rows = [row for row in self.rows if row.source == source]
            runs = sum(len(row.records) for row in rows)
            yield f"beside yours: {len(rows)} rows of {one_line(source)} ({runs} runs); nothing of them is trained"
            reasons: dict[str, list[str]] = {}
            for _, row, why in (one for one in self.left_out if one[0] == source):
                reasons.setdefault(why, []).append(one_line(row))
            for why, names in reasons.items():
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                yield f"not beside yours: {', '.join(names[:_NAMED])}{more}: {one_line(why)}"

    def cells(self, blocks: Sequence[Any]) -> list[dict[str, Any]]:
        """Their runs as a manifest has them; in a file with blocks they stand in each, on what it asks for."""
        placed = {"blocks": list(blocks)} if blocks else {}
        return [{**cell, **placed} for row in self.rows for cell in row.cells]

    def manifest(self) -> list[dict[str, str]]:
        """The rows that do not stand beside, as a manifest keeps them."""
        return [{"source": source, "row": row, "why": why} for source, row, why in self.left_out]

    def records(self, name: str) -> list[Record]:
        """Their records as rows of the comparison `name`."""
        return [
            asked(record, row.tasks).model_copy(
                update={"row": row.label, "comparison": name, "base_model": cell["base_model"]}
            )
            for row in self.rows
            for record, cell in zip(row.records, row.cells, strict=True)
        ]


def set_beside(plan: Plan, sources: Sequence[str], workdir: Path | None) -> Beside:
    """The rows of `sources` (work directories, archives, names of installed records) that may stand beside the plan's.

    Args:
        workdir: gets a copy of their runs; None: nothing is written.

    Raises:
        InputError: a source that is none, or has a record that cannot be read.
    """
    beside, conditions = Beside(), Conditions(plan)
    taken = {row.label for row in plan.rows}
    for source in dict.fromkeys(sources):
        name = name_of(source)
        with opened(source) as other:
            for comparison, rows in _rows(other):
                for label, members in rows.items():
                    row = _row(conditions, other, workdir, members)
                    if isinstance(row, str):
                        beside.left_out.append((name, label, row))
                        continue
                    beside.rows.append(_labelled(replace(row, source=name), label, comparison, taken))
    return beside


_Member = tuple[Record, Mapping[str, Any]]


def _rows(other: Path) -> Iterator[tuple[str, dict[str, list[_Member]]]]:
    """Comparison -> its rows by label: each run with its cell. A run of several comparisons stands in the first."""
    seen: set[str] = set()
    for name in manifest_files(other):
        manifest = read_manifest(other, name) or {}
        cells = {(cell["id"], cell["row"]): cell for cell in manifest.get("cells", ())}
        rows: dict[str, list[_Member]] = {}
        for record in read_records(other, name):
            rows.setdefault(record.row, []).append((record, cells[record.id, record.row]))
        yield name, {label: members for label, members in rows.items() if not seen >= {r.id for r, _ in members}}
        seen |= {run for run, _ in cells}


def _labelled(row: OtherRow, label: str, comparison: str, taken: set[str]) -> OtherRow:
    """The row under a label that says whose it is, and that no other row has."""
    shown = f"{label} ({row.source})"
    shown = f"{label} ({row.source}, {comparison})" if shown in taken else shown
    taken.add(shown)
    cells = tuple({**cell, "row": shown, "against": row.source, "tasks": list(row.tasks)} for cell in row.cells)
    return replace(row, label=shown, cells=cells)


def _row(conditions: Conditions, other: Path, workdir: Path | None, members: Sequence[_Member]) -> OtherRow | str:
    """The runs of a row that may stand beside, brought into `workdir`; or why it may not."""
    finished = [record for record, _ in members if record.status == "finished"]
    if not finished:
        return f"no run of it finished ({members[0][0].status})"
    tasks: tuple[str, ...] = ()
    for record in finished:
        if why := conditions.against(record):
            return why
        if not (tasks := conditions.tasks_of(record)):
            return "scored on none of your tasks, or by code that gives other numbers now"
    if workdir is not None:
        try:
            for record, _ in members:
                source = RunFolder(other, record.id)
                whole = source.read()  # as it lies there, on all its tasks
                assert whole is not None
                take_run(whole, source, workdir)
        except InputError as error:
            return str(error)
    base = conditions.base_name(finished[0])
    cells = tuple({**_kept(cell), "base_model": base} for _, cell in members)
    return OtherRow("", "", tuple(record for record, _ in members), cells, tasks)


def _kept(cell: Mapping[str, Any]) -> dict[str, Any]:
    """A cell without its place in the other file: its blocks, and the look that it came at."""
    return {key: value for key, value in cell.items() if key not in ("blocks", "look")}


class Conditions:
    """Those of a plan, as runs that were made elsewhere are held against them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._cells = [cell for cell in plan.cells if not cell.fault]

    @cached_property
    def _bases(self) -> dict[str, str]:
        """Fingerprint of a base model -> its name here."""
        return {str(cell.identity["model"]): cell.base_model for cell in self._cells}

    @cached_property
    def _own(self) -> dict[str, PlannedCell]:
        return {cell.id: cell for cell in self._cells}

    @cached_property
    def _texts(self) -> dict[str, set[str]]:
        """Kind -> the texts of that kind that rows here learn from."""
        texts: dict[str, set[str]] = {}
        for corpus in self.plan.corpora.values():
            texts.setdefault(corpus.kind, set()).add(corpus.sha256)
        return texts

    @cached_property
    def _updates(self) -> set[int]:
        first = {cell.row.label: cell for cell in self._cells}.values()
        return {updates for cell in first if (updates := of_plan(self.plan, cell).planned or cell.row.max_steps)}

    @cached_property
    def _dev(self) -> str | None:
        return self.plan.dev.sha256 if self.plan.dev is not None else None

    def base_name(self, record: Record) -> str:
        """What its base model is called here."""
        return self._bases[str(record.identity["model"])]

    def against(self, record: Record) -> str:
        """Why a run may not stand beside; empty where it may."""
        for fault in (self._of_run, self._of_base, self._of_text, self._of_updates, self._of_code):
            if why := fault(record):
                return why
        return ""

    def _of_run(self, record: Record) -> str:
        if record.id in self._own:
            return f'the same run as your row "{self._own[record.id].row.label}"'
        if record.rehearsal:
            return "of a rehearsal"
        return "" if record.identity else "made before records said what they depend on"

    def _of_base(self, record: Record) -> str:
        if str(record.identity.get("model")) in self._bases:
            return ""
        return f"another base model ({record.base_model}; yours: {', '.join(dict.fromkeys(self._bases.values()))})"

    def _of_text(self, record: Record) -> str:
        text, own = record.corpus or {}, self._texts
        if not text or str(text.get("kind")) not in own or text.get("sha256") in own[str(text["kind"])]:
            return ""  # a kind of text that no row here learns from stands in the table of differences
        return f"trained on other text ({text.get('uri')}, {text.get('count', 0):,} {text['kind']})"

    def _of_updates(self, record: Record) -> str:
        made = record.training.get("planned_steps") or record.identity.get("max_steps")
        if made and self._updates and made not in self._updates:
            yours = ", ".join(f"{n:,}" for n in sorted(self._updates))
            return f"another budget: {made:,} updates (yours: {yours})"
        selected = record.identity.get("dev")
        if selected and self._dev and selected != self._dev:
            return f"its weights were selected on another set ({(record.dev or {}).get('task')})"
        return ""

    def _of_code(self, record: Record) -> str:
        """Numbers of code that was corrected since are none to be measured against."""
        try:
            known = code_ids(registry.load(registry.METHODS, record.method))
        except InputError:  # a method that is not installed here
            return ""
        return "" if record.identity.get("code") in known else "made by code of its method that gives other numbers now"

    def tasks_of(self, record: Record) -> tuple[str, ...]:
        """The plan's tasks that the run was scored on, by code that gives the same numbers."""
        scored = {score.made_by for score in record.scores}
        return tuple(
            task for task, code in self.plan.scoring.items() if task in scored and record.evaluation.get(task) in code
        )


def under_protocols(beside: Beside, own: Sequence[Record]) -> Beside:
    """Without the tasks that the comparison's own runs were scored on under another protocol."""
    protocols: dict[tuple[str, ...], set[str]] = {}
    for record in own:
        for score in record.scores:
            protocols.setdefault(_key(score), set()).add(score.comparable)
    rows, left_out = [], list(beside.left_out)
    for row in beside.rows:
        unlike = {
            score.made_by
            for record in row.records
            for score in record.scores
            if (known := protocols.get(_key(score))) and score.comparable not in known
        }
        tasks = tuple(task for task in row.tasks if task not in unlike)
        lost = [task for task in row.tasks if task in unlike]
        if lost:
            left_out.append((row.source, row.label, f"scored under another protocol: {', '.join(lost)}"))
        if tasks:
            rows.append(replace(row, tasks=tasks, cells=tuple({**cell, "tasks": list(tasks)} for cell in row.cells)))
    return Beside(rows, left_out)


def _key(score: Score) -> tuple[str, ...]:
    return score.task, score.source, score.split, score.metric, score.aggregation
