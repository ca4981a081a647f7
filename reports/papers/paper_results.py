"""Every published number of a paper with our number for it, and how the two compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from harness.errors import InputError
from harness.files.printable import join_some
from reports.load import RecordedRow, deterministic
from reports.papers.agreement import Verdict, judge
from reports.papers.conditions import (
    find_differences,
    is_run_of,
    other_base,
    other_training,
    remark_on,
)
from reports.papers.definition import (
    Definition,
    PaperCell,
    PaperColumn,
    PaperFigure,
    PaperRow,
    PaperTable,
    Published,
)
from reports.papers.measured import NOTHING, Measured, measure, measure_trials, subtract
from reports.papers.public_runs import locate_among_runs, read_public_runs
from reports.records.run_library import (
    RunLibrary,
    ScoredTrial,
    TrialSetting,
    read_number,
    trained_on,
)
from reports.stats.estimate import mean_sd

COMPARED = ("inside", "above", "below")
Training = tuple[Any, ...]


@dataclass(frozen=True)
class Match:
    """A published number, its place in the definition, what we measured for it, and the verdict.

    Attributes:
        place: None for a number of no table, as one that a passage of text states.
        ours: our row that `measured` is of.
        remarks: differences from the paper's runs that do not prevent the comparison.
    """

    published: Published
    place: PaperCell | None
    verdict: Verdict
    ours: RecordedRow | None = None
    measured: Measured = NOTHING
    remarks: tuple[str, ...] = ()

    @property
    def value(self) -> float | None:
        return read_number(self.published["value"])

    @property
    def difference(self) -> float | None:
        """Ours minus published, where the two can be compared."""
        is_compared = self.verdict.kind in (*COMPARED, "one seed")
        if self.value is None or not is_compared:
            return None
        ours, _ = mean_sd(self.measured.values)
        return ours - self.value


def training_of(row: RecordedRow) -> Training | None:
    """What rows trained alike share, the training text first; None of a row without training."""
    run = (row.finished or row.records)[0]
    if run.corpus is None:
        return None
    return trained_on(run)


def _describe_several(
    definition: Definition,
    table: PaperTable,
    row: PaperRow,
    base: str,
    candidates: Sequence[RecordedRow],
) -> str:
    """Say which rows of ours suit one row of a definition, and what tells them apart."""
    texts = []
    for one in candidates:
        run = one.records[0]
        texts.append(f'"{one.label}" of comparison "{run.comparison}" (run {run.id})')
    return (
        f'{definition.name}: table "{table.key}", row "{row.label}": {len(candidates)} '
        f"configurations on {base} suit it: {join_some(texts, 6)}; name its comparison "
        '(comparison = "NAME") or its configuration (where = { KEY = VALUE })'
    )


class PaperResults:
    """The published numbers of a definition and the results of a work directory, brought together.
    Everything is computed once.
    """

    def __init__(self, definition: Definition, library: RunLibrary) -> None:
        self.definition = definition
        self.library = library
        self.public_runs = read_public_runs(definition)
        self.published = definition.published_rows()
        self._columns = {key: definition.spread(key) for key in definition.columns}
        self._candidates: dict[int, dict[str, list[RecordedRow]]] = {}
        self._measured: dict[tuple[int, int], Measured] = {}

    # --- the paper's side
    # ---------------------------------------------------------------------------------------------

    def columns(self, part: PaperTable | PaperFigure) -> list[PaperColumn]:
        """The columns of a table or a figure; the same objects at each call."""
        return self._columns.get(part.columns, [])

    @cached_property
    def places(self) -> list[PaperCell | None]:
        """The place of each published number: the first table, row and column that have it."""
        return [self._find_place(p) for p in self.published]

    def _find_place(self, p: Published) -> PaperCell | None:
        for table in self.definition.tables:
            if p["table"] not in table.published:
                continue
            rows = [row for row in table.rows if p["model"] in row.published]
            columns = [column for column in self.columns(table) if column.prints(p)]
            if rows and columns:
                return PaperCell(table, rows[-1], columns[0])
        return None

    def numbers_of(self, table: PaperTable, row: PaperRow) -> list[Match]:
        """The published numbers of a row of a table."""
        numbers = []
        for n in self.numbers:
            if n.place is None or n.place.table is not table:
                continue
            if n.place.row is row:
                numbers.append(n)
        return numbers

    def bases_of(self, table: PaperTable, row: PaperRow) -> set[str]:
        """The base models on which a table of the paper has a row."""
        return {one.published["base_model"] for one in self.numbers_of(table, row)}

    def reference_bases(self, place: PaperCell) -> set[str]:
        """The base models on which the paper has the row that differences of a place go to."""
        reference = place.table.reference_of(place.row)
        if not reference:
            return set()
        _, models = reference
        found = set()
        for p in self.published:
            if p["table"] in place.table.published and p["model"] in models:
                found.add(p["base_model"])
        return found

    # --- our side
    # -----------------------------------------------------------------------------------------------------

    def is_about(self, table: PaperTable, base_model: str) -> bool:
        """Whether a table may have rows of ours on a base model: any that the paper does not have, and
        of the paper's own ones those that the table is about.
        """
        published = self.definition.find_published_base(base_model)
        about = set(table.bases)
        if not about:
            for row in table.rows:
                about |= self.bases_of(table, row)
        return not published or not about or published in about

    def candidates(self, row: PaperRow) -> dict[str, list[RecordedRow]]:
        """Our rows for a row of the paper by base model, the nearest to the paper first.

        No rehearsal, on the paper's text and with its settings, most finished seeds, most tasks,
        most training data, newest. Never by score.
        """
        if id(row) in self._candidates:
            return self._candidates[id(row)]

        def order(one: RecordedRow) -> tuple[Any, ...]:
            tasks: set[str] = set()
            for record in one.finished:
                tasks.update(score.task for score in record.scores)
            count = 0
            ended = ""
            for record in one.records:
                text = record.corpus or {}
                count = max(count, text.get("count") or 0)
                ended = max(ended, record.finished)
            newest = tuple(-ord(character) for character in ended)
            rank = self._rank(row, one)
            return *rank, -len(one.finished), -len(tasks), -count, newest, one.key

        by_base: dict[str, list[RecordedRow]] = {}
        if row.method:
            for one in self.library.find(row.method):
                if not row.weights and one.base_model in self.definition.weights_of_rows:
                    continue
                if is_run_of(self.definition, row, one.records[0]):
                    by_base.setdefault(one.base_model, []).append(one)
        for rows in by_base.values():
            rows.sort(key=order)
        self._candidates[id(row)] = by_base
        return by_base

    def check_candidates(self) -> None:
        """Raises:
        InputError: several configurations of ours suit one row of the paper equally. In a
            definition that ships, which names its comparison, such a cell has a footnote instead.
        """
        if self.definition.shipped:
            return
        for table in self.definition.tables:
            if table.columns:
                for row in table.rows:
                    self._check_row(table, row)

    def _check_row(self, table: PaperTable, row: PaperRow) -> None:
        for base, found in self.candidates(row).items():
            best = self._rank(row, found[0])
            equal = [one for one in found if self._rank(row, one) == best]
            if len(equal) > 1:
                message = _describe_several(self.definition, table, row, base, equal)
                raise InputError(message, file=self.definition.name, key=table.key)

    def _rank(self, row: PaperRow, one: RecordedRow) -> tuple[bool, int, bool]:
        """How near our row is to the paper's: rehearsals are last, then fewer unlike settings; in a
        comparison that the definition names, the row of the same label goes before others.
        """
        unlike = len(other_training(self.definition, row, one))
        other_label = bool(self.definition.comparisons) and one.label != row.label
        return one.rehearsal, unlike, other_label

    def measure(self, row: RecordedRow, column: PaperColumn) -> Measured:
        """The number of a row of ours in a column of scores."""
        key = (id(row), id(column))
        if key not in self._measured:
            self._measured[key] = measure(row, column)
        return self._measured[key]

    def value(self, place: PaperCell, ours: RecordedRow) -> Measured:
        """A cell of ours in a table; a difference is to the reference row on the same base model,
        trained alike.
        """
        if not place.column.difference:
            if place.column.score:
                return self.measure(ours, place.column)
            return NOTHING
        if (reference := place.reference) is None:
            return NOTHING
        same = self.candidates(reference).get(ours.base_model, [])
        alike = self._find_trained_alike(place.row, ours, reference)
        if not alike:
            why = "measured on this base model"
            if same:
                why = "trained alike (text, training steps, dev set)"
            return Measured(missing=f'no difference: "{reference.label}" was not {why}')
        columns = self.columns(place.table)
        scores = next(c for c in columns if c.head == place.column.name)
        nearest = alike[0]
        gap = subtract(
            self.measure(ours, scores),
            self.measure(nearest, scores),
            place.column.difference,
        )
        if gap.by_seed and nearest is not same[0]:
            row = f'a row "{reference.label}" that was trained alike and is not shown'
            gap = replace(gap, partly=f"The difference is to {row}.")
        return gap

    def _find_trained_alike(
        self,
        row: PaperRow,
        ours: RecordedRow,
        reference: PaperRow,
    ) -> list[RecordedRow]:
        """Our rows of a reference that were trained as `ours` was, so that the difference means
        something.
        """
        same = []
        for r in self.candidates(reference).get(ours.base_model, []):
            if r.rehearsal == ours.rehearsal:
                same.append(r)
        for key in (*row.where, *reference.where):
            option, _, _ = key.partition(".")
            if option == "corpus":
                return same  # the text is the difference
        training = training_of(ours)
        if training is None:
            return same
        return [r for r in same if training_of(r) in (None, training)]

    def trials_of(self, row: PaperRow) -> list[ScoredTrial]:
        """The trials that belong to a row; what several studies scored counts once."""
        by_runs: dict[tuple[str, ...], ScoredTrial] = {}
        for trial in self.library.trials:
            if is_run_of(self.definition, row, trial.runs[0]):
                ids = tuple(run.id for run in trial.runs)
                by_runs.setdefault(ids, trial)
        return list(by_runs.values())

    def value_of_study(self, row: PaperRow, setting: TrialSetting, column: PaperColumn) -> Measured:
        """A statistic over the trials of one setting, of any study."""
        trials = [trial for trial in self.trials_of(row) if trial.setting == setting]
        return measure_trials(trials, column.name)

    # --- both
    # ---------------------------------------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> list[Match]:
        """One entry for each published number, in the order of the file."""
        found = []
        for p, place in zip(self.published, self.places, strict=True):
            found.append(self._match(p, place))
        return found

    def _match(self, p: Published, place: PaperCell | None) -> Match:
        if place is None:
            why = "a statement of the text, which no table has"
            return Match(p, None, Verdict.not_measured(why))
        row = place.row
        column = place.column
        if not row.method or not column.score:
            lacking = "no method of this harness"
            if row.method:
                lacking = "no column of ours"
            why = row.cannot or column.cannot or lacking
            return Match(p, place, Verdict.not_measured(why))
        studies = column.kind == "trials"
        if studies:
            ours, measured = self._find_trials(p, place)
        else:
            ours, measured = self._find_runs(p, place)
        if ours is None or not measured.by_seed:
            why = measured.missing or "not evaluated"
            return Match(p, place, Verdict.not_measured(why), ours, measured)
        verdict = self._judge(p, place, ours, measured)
        if studies:
            if verdict.kind == "one seed":
                verdict = replace(verdict, text="One study: there is no interval.")
            return Match(p, place, verdict, None, measured)
        of_conditions = remark_on(self.definition, p["base_model"], row, ours)
        value = read_number(p["value"])
        of_public_runs = locate_among_runs(self.public_runs, p, value)
        remarks = (*of_conditions, *of_public_runs)
        return Match(p, place, verdict, ours, measured, remarks)

    def _judge(
        self, p: Published, place: PaperCell, ours: RecordedRow, measured: Measured
    ) -> Verdict:
        """Compare a published number with ours."""
        reasons = self._reasons(p, place, ours, measured)
        sides: tuple[tuple[float, ...], ...] = ()
        is_fixed = False
        if place.column.kind != "trials" and not reasons:
            sides = self._random_sides(place, ours, measured)
            is_fixed = not sides and bool(deterministic(ours.records[0].method))
        return judge(
            read_number(p["value"]),
            measured.values,
            deterministic=is_fixed,
            sides=sides,
            reasons=reasons,
            digits=place.column.digits,
            runs=self.definition.runs,
            best_of=self.definition.best_of,
        )

    def _find_runs(self, p: Published, place: PaperCell) -> tuple[RecordedRow | None, Measured]:
        """Our row for a published one and its number: of the paper's base model first; the first
        row that has it.
        """
        found = self.candidates(place.row)
        by_base = {}
        for base, rows in found.items():
            own = [one for one in rows if not one.rehearsal]
            if own:
                by_base[base] = own
        if not by_base:
            why = "it was not run"
            if found:
                why = "only rehearsals ran it"
            return None, Measured(missing=place.row.cannot or why)

        def order(base: str) -> tuple[bool, str]:
            other = other_base(self.definition, p["base_model"], place.row, base)
            return bool(other), base

        pairs = []
        for base in sorted(by_base, key=order):
            for one in by_base[base]:
                measured = self.value(place, one)
                if measured.by_seed:
                    return one, measured
                pairs.append((one, measured))
        return pairs[0]

    def _find_trials(self, p: Published, place: PaperCell) -> tuple[RecordedRow | None, Measured]:
        """From the first setting that can be compared with the paper's, else from the first that
        has the row.
        """
        found: list[tuple[int, RecordedRow, Measured]] = []
        for setting in self.library.settings:
            measured = self.value_of_study(place.row, setting, place.column)
            if not measured.by_seed:
                continue
            by_id = self.library.by_id
            runs = tuple(by_id[run] for run in measured.records if run in by_id)
            ours = RecordedRow.of_records(place.row.label, setting.base_model, runs)
            if (setting.dev_task, setting.dev_source) != ("STS-B", "senteval"):
                unlike = f"selected on {setting.dev_task} of {setting.dev_source}"
                measured = replace(measured, unlike=(unlike,))
            reasons = self._reasons(p, place, ours, measured)
            found.append((len(reasons), ours, measured))
        if not found:
            return None, Measured(missing=place.row.cannot or "no study of it")
        _, ours, measured = min(found, key=lambda one: one[0])
        return ours, measured

    def _reasons(
        self,
        p: Published,
        place: PaperCell,
        ours: RecordedRow,
        measured: Measured,
    ) -> list[str]:
        """Why our number cannot be compared with the published one."""
        reasons = find_differences(self.definition, p["base_model"], place.row, ours)
        reasons += [f"Another protocol: {text}." for text in measured.unlike]
        if (reference := place.reference) is not None:
            bases = self.reference_bases(place)
            if bases and p["base_model"] not in bases:
                known = ", ".join(sorted(bases))
                reasons.append(f"Another reference row: the paper's is on {known}.")
            else:
                alike = self._find_trained_alike(place.row, ours, reference)
                if alike:
                    reasons += other_training(self.definition, reference, alike[0])
        if place.column.cannot:
            reasons.append(f"Perhaps another protocol: {place.column.cannot}.")
        return list(dict.fromkeys(reasons))

    def _random_sides(
        self,
        place: PaperCell,
        ours: RecordedRow,
        measured: Measured,
    ) -> tuple[tuple[float, ...], ...]:
        """The sides of a difference that depend on a seed, where it is not taken seed by seed."""
        if not measured.sides or place.reference is None:
            return ()
        methods = ours.records[0].method, place.reference.method
        sides = zip(measured.sides, methods, strict=True)
        return tuple(side for side, method in sides if not deterministic(method))
