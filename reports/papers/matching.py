"""Every published number of a paper beside ours, with what can be said about the two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from harness import registry
from harness.errors import InputError
from reports.papers.agreement import Obstacle, Verdict, judge
from reports.papers.candidates import Candidates, trained
from reports.papers.column_values import NOTHING, Lack, Measured, difference, measure, of_trials
from reports.papers.conditions import Conditions
from reports.papers.definition import Definition, PaperColumn, PaperRow, PaperTable
from reports.papers.published_file import Published, published_file
from reports.read.comparison_runs import ResultRow
from reports.read.run_library import RunLibrary, ScoredTrial, TrialSetting
from reports.stats.estimate import mean_sd


@dataclass(frozen=True)
class Place:
    """Where a published number stands in a definition."""

    table: PaperTable
    row: PaperRow
    column: PaperColumn


@dataclass(frozen=True)
class MatchedNumber:
    """One published number, what we measured for it, and the verdict."""

    published: Published
    value: float | None
    place: Place | None
    row: ResultRow | None
    ours: Measured
    verdict: Verdict
    remarks: tuple[str, ...] = ()  # what is unlike the paper's without making it another thing

    @property
    def difference(self) -> float | None:
        """Ours minus published, where the two mean the same."""
        if self.value is None or self.verdict.kind not in ("inside", "above", "below", "one seed"):
            return None
        return mean_sd(self.ours.values)[0] - self.value


class Matching:
    """A definition, its published numbers and a library of runs, brought together. Everything is computed once."""

    def __init__(self, definition: Definition, library: RunLibrary) -> None:
        self.definition = definition
        self.library = library
        self.conditions = Conditions(definition)
        self.published = published_file(definition)
        self._measured: dict[tuple[int, int], Measured] = {}
        self._deterministic: dict[str, bool] = {}
        self._candidates = Candidates(definition, library, self.conditions)

    @cached_property
    def places(self) -> dict[tuple[str, str, str, str], Place]:
        """(table, model, task, metric) of a published number -> its place; the first table that has it."""
        by_number: dict[tuple[str, str, str, str], Place] = {}
        for table in self.definition.tables:
            columns = self.columns(table)
            rows = {model: row for row in table.rows for model in row.published}
            for p in self.published:
                key = (p["table"], p["model"], p["task"], p["metric"])
                if p["table"] not in table.published or p["model"] not in rows or key in by_number:
                    continue
                for column in columns:
                    if column.published == p["task"] and column.published_metric in ("", p["metric"]):
                        by_number[key] = Place(table, rows[p["model"]], column)
                        break
        return by_number

    def place_of(self, p: Published) -> Place | None:
        return self.places.get((p["table"], p["model"], p["task"], p["metric"]))

    def candidates(self, row: PaperRow) -> dict[str, list[ResultRow]]:
        """Our rows for a row of the paper, by base model; the best known first (see `Candidates`)."""
        return self._candidates.of(row)

    def measure(self, row: ResultRow, column: PaperColumn) -> Measured:
        key = (id(row), id(column))
        if key not in self._measured:
            self._measured[key] = measure(self.library, row, column)
        return self._measured[key]

    @cached_property
    def _columns(self) -> dict[str, list[PaperColumn]]:
        return {table.key: self.definition.columns_of(table) for table in self.definition.tables}

    def columns(self, table: PaperTable) -> list[PaperColumn]:
        """The same objects at each call."""
        return self._columns[table.key]

    def column_set(self, key: str) -> list[PaperColumn]:
        """The columns of a set of the definition, as figures use them."""
        return self.definition.columns[key]

    def value(self, table: PaperTable, spec: PaperRow, row: ResultRow, column: PaperColumn) -> Measured:
        """A cell of ours in a table of tasks; differences are to the reference row on the same base model."""
        if not column.delta:
            return self.measure(row, column) if column.measured else NOTHING
        base = next(c for c in self.columns(table) if c.title == column.delta)
        reference = table.reference_of(spec)
        if reference is None or reference is spec:
            return NOTHING
        label = reference.label
        same = self.candidates(reference).get(row.base_model, [])
        if not same:
            return _no_difference(f'"{label}" was not measured on this base model')
        alike = self._alike(spec, row, reference)
        if not alike:
            return _no_difference(f'"{label}" was not trained alike (text, updates, dev set)')
        gap = difference(self.measure(row, base), self.measure(alike[0], base), column.sign)
        if gap.by_seed and alike[0] is not same[0]:
            gap = replace(gap, partly=f'to a row "{label}" trained as this one, which the table does not show')
        return gap

    def _alike(self, spec: PaperRow, row: ResultRow, reference: PaperRow) -> list[ResultRow]:
        """Our rows of a reference that were trained as `row` was, so that a difference to them means something."""
        same = [r for r in self.candidates(reference).get(row.base_model, []) if r.rehearsal == row.rehearsal]
        if spec.by_text or reference.by_text or any(k.startswith("corpus.") for k in (*spec.where, *reference.where)):
            return same  # the text is the difference
        return [r for r in same if None in (trained(r), trained(row)) or trained(r) == trained(row)]

    def of_study(self, spec: PaperRow, setting: TrialSetting, column: PaperColumn) -> Measured:
        """A statistic over the trials of one setting, of whichever study."""
        return of_trials([t for t in self.trials_of(spec) if t.setting == setting], column.statistic)

    def trials_of(self, spec: PaperRow) -> list[ScoredTrial]:
        """The trials that have a row's method and configuration; what several studies scored counts once."""
        by_runs: dict[tuple[str, ...], ScoredTrial] = {}
        for t in self.library.trials:
            if self.conditions.is_of(spec, t.runs[0]):
                by_runs.setdefault(tuple(r.id for r in t.runs), t)
        return list(by_runs.values())

    def deterministic(self, method: str) -> bool:
        """Whether no seed enters a method; unknown ones count as random."""
        if method not in self._deterministic:
            try:
                self._deterministic[method] = bool(registry.load(registry.METHODS, method).card.deterministic)
            except InputError:
                self._deterministic[method] = False
        return self._deterministic[method]

    @cached_property
    def rows(self) -> list[MatchedNumber]:
        """One entry for each published number, in the order of the file."""
        return [self._join(p) for p in self.published]

    def _join(self, p: Published) -> MatchedNumber:
        value = _number(p["value"])
        place = self.place_of(p)

        if place is None or not place.row.method or not place.column.measured:
            return MatchedNumber(p, value, place, None, NOTHING, self._nothing(p, place))
        if place.column.statistic:
            return self._join_study(p, value, place)
        found = self.candidates(place.row)
        by_base = {base: own for base, rows in found.items() if (own := [row for row in rows if not row.rehearsal])}
        if not by_base:
            why = place.row.cannot or place.column.cannot or ("rehearsed only" if found else "no run of it")
            return MatchedNumber(p, value, place, None, NOTHING, Verdict.not_measured(why))
        order = sorted(by_base, key=lambda b: (bool(self.conditions.base(p["base_model"], place.row, b)), b))
        chosen: tuple[ResultRow, Measured] | None = None
        for base in order:
            for row in by_base[base]:
                ours = self.value(place.table, place.row, row, place.column)
                if chosen is None or (ours.by_seed and not chosen[1].by_seed):
                    chosen = row, ours
        assert chosen is not None
        row, ours = chosen
        obstacles = self.conditions.obstacles(p["base_model"], place.row, row)
        obstacles += [Obstacle("protocol", text) for text in ours.unlike]
        obstacles += self._reference_obstacles(p, place, row)
        if place.column.unstated:
            obstacles.append(Obstacle("protocol", f"{place.column.unstated} not stated by the paper"))
        reported = self.definition.reported_as(place.table, place.row)
        if place.column.delta and reported.by == "best" and reported.runs > 1:
            obstacles.append(Obstacle("protocol", f"a difference of {reported.text} each"))
        # Asked last, since the answer imports the methods.
        ask = bool(ours.by_seed) and not obstacles
        sides = self._random_sides(place, row, ours) if ask else ()
        verdict = judge(
            value,
            ours.values,
            deterministic=ask and not sides and self.deterministic(row.records[0].method),
            sides=sides,
            obstacles=list(dict.fromkeys(obstacles)),
            unmeasured=ours.missing,
            digits=place.column.digits,
            reported=reported,
        )
        remarks = self.conditions.remarks(p["base_model"], place.row, row) if ours.by_seed else ()
        return MatchedNumber(p, value, place, row, ours, verdict, remarks)

    def _random_sides(self, place: Place, row: ResultRow, ours: Measured) -> tuple[tuple[float, ...], ...]:
        """The sides of a difference that a seed enters, where it is not taken seed by seed."""
        reference = place.table.reference_of(place.row)
        if not ours.sides or reference is None:
            return ()
        methods = row.records[0].method, reference.method
        return tuple(side for side, method in zip(ours.sides, methods, strict=True) if not self.deterministic(method))

    def _nothing(self, p: Published, place: Place | None) -> Verdict:
        """Of a number that nothing of ours can stand beside."""
        if place is None:
            why = self.definition.statements.get(p["table"], "")
        else:
            why = place.row.cannot or place.column.cannot or ("" if place.row.method else "no method of ours")
        return Verdict.not_measured(why) if why else Verdict("not measured", "not measured here")

    def _reference_obstacles(self, p: Published, place: Place, row: ResultRow) -> list[Obstacle]:
        """A difference to a row that stands on another base model in the paper, or that is not the paper's here."""
        reference = place.table.reference_of(place.row)
        if not place.column.delta or reference is None or reference is place.row:
            return []
        bases = self.reference_bases(place)
        if bases and p["base_model"] not in bases:
            return [Obstacle("reference", f"on {', '.join(sorted(bases))}")]
        alike = self._alike(place.row, row, reference)
        return self.conditions.of_training(reference, alike[0]) if alike else []

    def reference_bases(self, place: Place) -> set[str]:
        """The base models on which the paper has the row that a row's differences go to."""
        reference = place.table.reference_of(place.row)
        if reference is None:
            return set()
        models = [place.table.reference_model] if place.table.reference_model else reference.published
        return {q["base_model"] for q in self.published if q["table"] in place.table.published and q["model"] in models}

    def _join_study(self, p: Published, value: float | None, place: Place) -> MatchedNumber:
        """Of the first setting that may be compared with the paper's, else of the first that has the row."""
        by_setting: list[tuple[list[Obstacle], Measured]] = []
        for setting in self.library.settings:
            ours = self.of_study(place.row, setting, place.column)
            if ours.by_seed:
                runs = tuple(r for r in (self.library.by_id.get(i) for i in ours.records) if r)
                row = ResultRow(place.row.label, setting.base_model, runs)
                obstacles = self.conditions.obstacles(p["base_model"], place.row, row)
                if place.column.source and (setting.dev_task, setting.dev_source) != ("STS-B", place.column.source):
                    selected = f"selected on {setting.dev_task} {setting.dev_source}"
                    obstacles.append(Obstacle("protocol", selected))
                by_setting.append((obstacles, ours))
        if not by_setting:
            return MatchedNumber(
                p, value, place, None, NOTHING, Verdict.not_measured(place.row.cannot or "no study of it")
            )
        obstacles, ours = min(by_setting, key=lambda one: len(one[0]))
        verdict = judge(value, ours.values, obstacles=obstacles)
        if verdict.kind == "one seed":
            verdict = Verdict("one seed", "one study: no interval")
        return MatchedNumber(p, value, place, None, ours, verdict)


def _no_difference(why: str) -> Measured:
    return Measured({}, lacks=(Lack(f"no difference: {why}"),))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
