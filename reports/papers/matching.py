"""Every published number of a paper beside ours, with what can be said about the two."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from harness import registry
from harness.errors import InputError
from reports.papers.agreement import Obstacle, Verdict, judge
from reports.papers.column_values import NOTHING, Lack, Measured, difference, measure, of_trials
from reports.papers.definition import Definition, PaperColumn, PaperRow, PaperTable
from reports.papers.published_file import Published, published_file
from reports.read.comparison_runs import ResultRow
from reports.read.run_library import RunLibrary, ScoredTrial, TrialSetting, matches, trained_on
from reports.stats.bootstrap import mean_sd


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

    @property
    def difference(self) -> float | None:
        """Ours minus published, where the two mean the same."""
        if self.value is None or self.verdict.kind not in ("inside", "above", "below", "one seed"):
            return None
        return mean_sd(self.ours.values)[0] - self.value


Training = tuple[Any, ...]


def trained(row: ResultRow) -> Training | None:
    """What rows trained alike share, the training text first; None of a row without training."""
    run = (row.finished or row.records)[0]
    return None if run.corpus is None else trained_on(run)


class Matching:
    """A definition, its published numbers and a library of runs, brought together. Everything is computed once."""

    def __init__(self, definition: Definition, library: RunLibrary) -> None:
        self.definition = definition
        self.library = library
        self.published = published_file(definition)
        self._measured: dict[tuple[int, int], Measured] = {}
        self._deterministic: dict[str, bool] = {}
        self._candidates: dict[int, dict[str, list[ResultRow]]] = {}

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
        """Our rows for a row of the paper, by base model; the best known first: trained as most rows of a table of
        differences are, most finished seeds, most training data, newest. Never by score."""
        if id(row) in self._candidates:
            return self._candidates[id(row)]
        by_base = self._candidates[id(row)] = {}
        for one in self.library.find(row.method, row.where) if row.method else []:
            by_base.setdefault(one.base_model, []).append(one)
        shared = self._shared(row)

        def order(one: ResultRow) -> tuple[Any, ...]:
            wanted, had = shared.get(one.base_model), trained(one)
            return bool(self._data_obstacles(row, one)), None not in (wanted, had) and had != wanted, *self._rank(one)

        for members in by_base.values():
            members.sort(key=order)
        return by_base

    def _shared(self, row: PaperRow) -> dict[str, Training]:
        """Base model -> the training that most rows have of the table of differences that `row` is in."""
        table = next((t for t in self.definition.tables if any(r is row for r in t.rows)), None)
        if table is None or not table.reference:
            return {}
        by_base: dict[str, dict[Training, list[ResultRow]]] = {}
        for spec in table.rows:
            seen: dict[tuple[str, Training], ResultRow] = {}
            for one in self.library.find(spec.method, spec.where) if spec.method else []:
                if one.finished and (training := trained(one)) is not None:
                    seen.setdefault((one.base_model, training), one)
            for (base, training), one in seen.items():
                by_base.setdefault(base, {}).setdefault(training, []).append(one)

        def merit(item: tuple[Training, list[ResultRow]]) -> tuple[Any, ...]:
            training, rows = item
            count = (rows[0].finished[0].corpus or {}).get("count")
            seeds = sum(len(row.finished) for row in rows)
            tasks = len({s.task for row in rows for r in row.finished for s in r.scores})
            return len(rows), seeds, tasks, count if isinstance(count, int) else 0, repr(training)

        return {base: max(trainings.items(), key=merit)[0] for base, trainings in by_base.items()}

    @staticmethod
    def _rank(row: ResultRow) -> tuple[Any, ...]:
        count = max(((r.corpus or {}).get("count") or 0 for r in row.records), default=0)
        newest = max((r.finished for r in row.records), default="")
        backwards = tuple(-ord(c) for c in newest)
        return -len(row.finished), -len({s.task for r in row.finished for s in r.scores}), -count, backwards, row.key

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
        label = spec.reference or table.reference
        reference = next((r for r in table.rows if r.label == label), None)
        if reference is None or reference is spec:
            return NOTHING
        same = self.candidates(reference).get(row.base_model, [])
        if not same:
            return _no_difference(f'"{label}" was not measured on this base model')
        meant = any(key.startswith("corpus.") for key in (*spec.where, *reference.where))  # the text is the difference
        alike = [r for r in same if meant or None in (trained(r), trained(row)) or trained(r) == trained(row)]
        if not alike:
            return _no_difference(f'"{label}" was not trained alike (text, updates, dev set)')
        gap = difference(self.measure(row, base), self.measure(alike[0], base), column.sign)
        if gap.by_seed and alike[0] is not same[0]:
            gap = replace(gap, partly=f'to a row "{label}" trained as this one, which the table does not show')
        return gap

    def of_study(self, spec: PaperRow, setting: TrialSetting, column: PaperColumn) -> Measured:
        """A statistic over the trials of one setting, of whichever study."""
        return of_trials([t for t in self.trials_of(spec) if t.setting == setting], column.statistic)

    def trials_of(self, spec: PaperRow) -> list[ScoredTrial]:
        """The trials that have a row's method and configuration; what several studies scored counts once."""
        by_runs: dict[tuple[str, ...], ScoredTrial] = {}
        for t in self.library.trials:
            if t.runs[0].method == spec.method and matches(t.runs[0], spec.where):
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

    def _base_obstacles(self, base: str, spec: PaperRow, base_model: str) -> list[Obstacle]:
        if base_model in spec.same_weights or (not spec.same_weights and self.definition.same_base(base, base_model)):
            return []
        return [Obstacle("base model", f"{base_model}, not {base}")]

    def _data_obstacles(self, spec: PaperRow, row: ResultRow) -> list[Obstacle]:
        """How the training text differs from the paper's."""
        wanted = self.definition.data.get(spec.data)
        if wanted is None or row.records[0].supervision == "untrained":
            return []
        said: dict[str, None] = {}  # in the order met
        for record in row.finished:
            corpus = record.corpus or {}
            uri, count = corpus.get("uri", "none"), corpus.get("count")
            seen = record.cost.get("corpus_sentences_seen")
            if not any(fnmatch.fnmatchcase(uri, one) for one in wanted.uris):
                amount = f", {count:,} entries" if isinstance(count, int) else ""
                said[f"{uri}{amount}; paper: {wanted.text}"] = None
            elif wanted.count and isinstance(count, int) and count != wanted.count:
                said[f"{count:,} of {wanted.count:,}"] = None
            elif wanted.count and seen and seen < 0.95 * wanted.count and not record.config.get("patience"):
                said[f"{seen:,.0f} of {wanted.count:,} seen"] = None
        return [Obstacle("training data", detail) for detail in said]

    @cached_property
    def rows(self) -> list[MatchedNumber]:
        """One entry for each published number, in the order of the file."""
        return [self._join(p) for p in self.published]

    def _join(self, p: Published) -> MatchedNumber:
        value = _number(p["value"])
        place = self.place_of(p)
        if place is None or not place.row.method or not place.column.measured:
            if place and not place.row.method:
                return MatchedNumber(p, value, place, None, NOTHING, Verdict.not_measured("no method of ours"))
            return MatchedNumber(p, value, place, None, NOTHING, Verdict("not measured", "not measured here"))
        if place.column.statistic:
            return self._join_study(p, value, place)
        by_base = self.candidates(place.row)
        if not by_base:
            return MatchedNumber(p, value, place, None, NOTHING, Verdict.not_measured("no run of it"))
        order = sorted(by_base, key=lambda b: (bool(self._base_obstacles(p["base_model"], place.row, b)), b))
        chosen: tuple[ResultRow, Measured] | None = None
        for base in order:
            for row in by_base[base]:
                ours = self.value(place.table, place.row, row, place.column)
                if chosen is None or (ours.by_seed and not chosen[1].by_seed):
                    chosen = row, ours
        assert chosen is not None
        row, ours = chosen
        obstacles = self._base_obstacles(p["base_model"], place.row, row.base_model)
        obstacles += self._data_obstacles(place.row, row)
        obstacles += [Obstacle("protocol", text) for text in ours.unlike]
        obstacles += self._reference_obstacles(p, place)
        if place.column.unstated:
            obstacles.append(Obstacle("protocol", f"{place.column.unstated} not stated by the paper"))
        verdict = judge(
            value,
            ours.values,
            # Asked last, since the answer imports the method.
            deterministic=bool(ours.by_seed) and not obstacles and self.deterministic(row.records[0].method),
            obstacles=list(dict.fromkeys(obstacles)),
            unmeasured=ours.missing,
            digits=place.column.digits,
        )
        return MatchedNumber(p, value, place, row, ours, verdict)

    def _reference_obstacles(self, p: Published, place: Place) -> list[Obstacle]:
        """A difference to a row that stands on another base model in the paper."""
        label = place.row.reference or place.table.reference
        if not place.column.delta or not label:
            return []
        reference = next(row for row in place.table.rows if row.label == label)
        models = [place.table.reference_model] if place.table.reference_model else reference.published
        bases = {q["base_model"] for q in self.published if q["table"] == p["table"] and q["model"] in models}
        return (
            [] if p["base_model"] in bases or not bases else [Obstacle("reference", f"on {', '.join(sorted(bases))}")]
        )

    def _join_study(self, p: Published, value: float | None, place: Place) -> MatchedNumber:
        """Of the first setting that may be compared with the paper's, else of the first that has the row."""
        by_setting: list[tuple[list[Obstacle], Measured]] = []
        for setting in self.library.settings:
            ours = self.of_study(place.row, setting, place.column)
            if ours.by_seed:
                obstacles = self._base_obstacles(p["base_model"], place.row, setting.base_model)
                runs = tuple(r for r in (self.library.by_id.get(i) for i in ours.records) if r)
                obstacles += self._data_obstacles(place.row, ResultRow(place.row.label, setting.base_model, runs))
                if place.column.source and (setting.dev_task, setting.dev_source) != ("STS-B", place.column.source):
                    selected = f"selected on {setting.dev_task} {setting.dev_source}"
                    obstacles.append(Obstacle("protocol", selected))
                by_setting.append((obstacles, ours))
        if not by_setting:
            return MatchedNumber(p, value, place, None, NOTHING, Verdict.not_measured("no study of it"))
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
