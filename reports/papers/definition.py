"""Definitions of papers' reports: which tables a paper has, and which of our scores and runs fill
them.

A definition is a TOML file; its name is the report's. Those of the papers are in
`reports/papers/definitions`; a user passes the path of another one. `docs/how-to/reports.md`
describes the keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from harness.config import Config, nearest
from harness.errors import InputError
from harness.files.reading import read_toml
from harness.results.published import folders

FOLDER = Path(__file__).parent / "definitions"
SUFFIX = ".toml"
# Averages and statistics are code (`measured`); "mteb:CATEGORY" and "mteb-task:NAME" are averages
# too.
AVERAGES = (
    "sts",
    "sts-mean",
    "sts-wmean",
    "sts-years",
    "transfer",
    "downstream",
    "downstream-without-snli",
    "probing",
    "half",
    "mteb",
)
STATISTICS = {"max": 1.0, "q75": 0.75, "q50": 0.5}
ABLATIONS = ("levels", "amounts", "additions")
FIGURES = ("alignment-uniformity", "histograms", "layers", "tradeoff", "scan", *ABLATIONS)
PUBLISHED_COLUMNS = {
    "table",
    "model",
    "base_model",
    "task",
    "metric",
    "value",
    "source_mark",
    "notes",
}

Published = dict[str, str]
"""A row of a CSV file of published numbers."""


class Data(Config):
    """A text that a paper trained on."""

    text: str = Field(description="a description for readers")
    uris: list[str] = Field(
        default=[], description="names of the same text here: corpora of the catalogue, whole URIs"
    )
    count: int | None = Field(default=None, description="number of its entries", ge=1)


class PaperColumn(Config):
    """A column of a table. With `each`: one column per name, which replaces "{}" in the other keys.

    `score` is one of "TASK METRIC [AGGREGATION]", "average NAME", "trials max|q75|q50" (over the
    trials of a study), "difference TITLE" (to the reference row, in the column of that title) and
    "loss TITLE" (the same with the opposite sign); "dev" at the end of the first two means the dev
    split. Without a score the column is the paper's alone.
    """

    each: list[str] = Field(default=[], description="names that replace {}")
    title: str = Field(default="", description='head of the column, as "Avg. · 7 tasks"')
    group: str = Field(default="", description="head above several columns")
    published: str = Field(default="", description='task of the published file, or "TASK | METRIC"')
    score: str = Field(default="", description="what we measure")
    digits: int = Field(default=2, ge=0, le=6, description="decimals shown")
    cannot: str = Field(
        default="", description="why our numbers cannot be compared, or why there are none"
    )

    @model_validator(mode="after")
    def _check_score(self) -> Self:
        kind = self.kind
        name = self.name
        if (
            kind == "average"
            and name not in AVERAGES
            and not name.startswith(("mteb:", "mteb-task:"))
        ):
            raise ValueError(
                f'column "{self.title}": unknown average "{name}"{nearest(name, list(AVERAGES))}'
            )
        if kind == "trials" and name not in STATISTICS:
            raise ValueError(
                f'column "{self.title}": unknown statistic "{name}"; known: {", ".join(STATISTICS)}'
            )
        if self.score and not (name if kind else self.metric):
            raise ValueError(
                f'column "{self.title}": score "{self.score}": expected TASK METRIC [AGGREGATION]'
            )
        return self

    @property
    def kind(self) -> str:
        """ "average", "trials", "difference" or "loss"; "" for the score of a task, or for none."""
        word = self.score.partition(" ")[0]
        if word in ("average", "trials", "difference", "loss"):
            return word
        return ""

    @property
    def split(self) -> str:
        """The split of the score: "test", "dev", or "all" for geometry, which has no splits."""
        if self.score.endswith(" dev"):
            return "dev"
        if self.score.startswith("geometry:"):
            return "all"
        return "test"

    @property
    def _words(self) -> tuple[str, str, str]:
        """Task, metric and aggregation; of other kinds the name alone."""
        if self.difference:
            words = self.score
        else:
            words = self.score.removesuffix(" dev")
        first, _, rest = words.partition(" ")
        metric, _, aggregation = rest.partition(" ")
        if self.kind:
            return (rest, "", "")
        return (first, metric, aggregation)

    @property
    def name(self) -> str:
        """The task; or the average, the statistic, the title of the column whose difference it is."""
        return self._words[0]

    @property
    def metric(self) -> str:
        return self._words[1]

    @property
    def aggregation(self) -> str:
        return self._words[2]

    @property
    def difference(self) -> int:
        """1 for the row minus the reference, -1 for the reference minus the row, 0 for a column of
        scores.
        """
        return {"difference": 1, "loss": -1}.get(self.kind, 0)

    @property
    def scale(self) -> float:
        """Factor from a score to the unit of the column: geometry and costs have units of their
        own.
        """
        if self.score.startswith(("geometry:", "efficiency:")):
            return 1
        return 100

    @property
    def better(self) -> Literal["higher", "lower", ""]:
        if self.difference or self.score.startswith("geometry:"):
            return ""
        if self.metric.endswith("_seconds"):
            return "lower"
        return "higher"

    @property
    def head(self) -> str:
        """The title without its second line."""
        return self.title.partition(" · ")[0]

    def prints(self, published: Published) -> bool:
        """Whether a published number belongs into this column."""
        task, _, metric = self.published.partition(" | ")
        return bool(task) and task == published["task"] and metric in ("", published["metric"])

    def spread(self) -> list[PaperColumn]:
        """One column per name of `each`; without names, itself."""
        if not self.each:
            return [self.model_copy(update={"title": self.title or self.published})]
        columns = []
        for name in self.each:
            keys = {}
            for key in ("title", "published", "score"):
                keys[key] = getattr(self, key).replace("{}", name)
            named = {"title": keys["title"] or name, "published": keys["published"] or name}
            columns.append(self.model_copy(update={**keys, **named}))
        return columns


class PaperRow(Config):
    """A row of a table: the published models and the runs of ours that belong to it.

    `where` selects runs by their configuration: option -> value, or a list of values. "*" in a text
    matches anything in the last part of a path; "*" alone matches any value, for options that the
    paper searched. "base_model" is what training started from, "corpus.uri" and "corpus.count" are
    of the training text, and "corpus" is a key of [data] whose text the run must have.
    """

    label: str
    published: list[str] = Field(default=[], description="models of the published file")
    method: str = Field(default="", description="our method; empty: none of ours")
    where: dict[str, Any] = Field(default={}, description="configuration of the runs")
    preset: str = Field(
        default="", description="preset with the paper's settings, from which runs must not differ"
    )
    data: str = Field(default="", description="key of the text that the paper trained on")
    weights: str = Field(default="", description="the published weights that the row evaluates")
    supervised: bool = Field(default=False, description="trained on labels: not ranked")
    cannot: str = Field(default="", description="why no run can make its numbers on public data")

    @property
    def fixed(self) -> dict[str, Any]:
        """`where` without the options that may have any value."""
        fixed = {}
        for key, value in self.where.items():
            if value != "*" and key != "corpus":
                fixed[key] = value
        return fixed


class PaperTable(Config):
    """A table of the paper; without columns and rows it is that of its search spaces.

    A row can be given by the label that it has in an earlier table.
    """

    key: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=80)
    title: str
    caption: str = ""
    published: list[str] = Field(default=[], description="its names in the published file")
    columns: str = Field(default="", description="key of the column set")
    rows: list[PaperRow] = Field(default=[])
    bases: list[str] = Field(
        default=[],
        description="base models of the paper that it is about; default: those of its published "
        "numbers. Of the paper's other ones it has no rows",
    )
    headline: list[str] = Field(default=[], description="columns of the summary of all tables")
    reference: list[str] = Field(
        default=[],
        description="rows that differences go to, by label or published model; of several, by method",
    )
    studies: list[str] = Field(
        default=[], description="studies of ours whose trials are its numbers"
    )

    def reference_of(self, row: PaperRow) -> tuple[PaperRow, list[str]] | None:
        """The row that differences of `row` go to, a reference row being its own, and its published
        models.
        """
        found = []
        for name in self.reference:
            for one in self.rows:
                if name in (one.label, *one.published):
                    found.append((one, [name] if name in one.published else one.published))
        return min(
            found,
            key=lambda pair: (pair[0] is not row, pair[0].method != row.method),
            default=None,
        )


@dataclass(frozen=True)
class PaperCell:
    """The cell of a table that a published number belongs to."""

    table: PaperTable
    row: PaperRow
    column: PaperColumn

    @property
    def reference(self) -> PaperRow | None:
        """The row that a difference goes to; None in a column of scores, and of a reference row."""
        if self.column.difference:
            found = self.table.reference_of(self.row)
        else:
            found = None
        if found is None or found[0] is self.row:
            return None
        return found[0]


class PaperFigure(Config):
    """A figure of the report; some kinds need no other key."""

    kind: Literal[FIGURES]  # type: ignore[valid-type]
    key: str = Field(default="", pattern=r"^[\w.-]*$", max_length=80)
    title: str = ""
    method: str = Field(default="", description="our method whose runs or trials it shows")
    where: dict[str, Any] = Field(default={}, description="configuration of these runs")
    factors: dict[str, str] = Field(
        default={},
        description='option -> label of its axis, one panel each; "A+B": two options together',
    )
    same: list[str] = Field(
        default=[], description="options whose most frequent value all runs shown share"
    )
    columns: str = Field(
        default="", description="column set: the first column that most runs have is drawn"
    )

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        needed = ("key", "title", "method", "factors") if self.kind in ("scan", *ABLATIONS) else ()
        for key in (*needed, "columns") if self.kind in ABLATIONS else needed:
            if not getattr(self, key):
                raise ValueError(
                    f'figure "{self.key or self.kind}" of kind "{self.kind}" lacks the key "{key}"'
                )
        most = {"scan": 2, "amounts": 1}.get(self.kind, len(self.factors))
        if len(self.factors) > most:
            raise ValueError(
                f'figure "{self.key}": {len(self.factors)} factors; "{self.kind}" draws at most {most}'
            )
        return self


class Definition(Config):
    """The report of a paper."""

    title: str
    description: str = ""
    published: str = Field(description="CSV file of published numbers")
    comparison: str | list[str] = Field(
        default="",
        description="comparisons of ours whose runs fill the rows; empty: every run of the work directory",
    )
    studies: list[str] = Field(
        default=[],
        description='studies of ours whose trials are used, "*" matches any text; empty: all',
    )
    runs: int = Field(default=1, ge=1, description="runs whose mean each published number is")
    best_of: int = Field(
        default=1, ge=1, description="runs whose best each published number is, by the test score"
    )
    public_runs: str = Field(
        default="", description="CSV file of public runs of one row with many seeds"
    )
    bases: dict[str, list[str]] = Field(
        default={}, description="base model of the published file -> our names of it"
    )
    families: dict[str, str] = Field(
        default={}, description="base model -> family of presets, where its name is none"
    )
    data: dict[str, Data] = Field(default={})
    columns: dict[str, list[PaperColumn]] = Field(default={})
    tables: list[PaperTable] = Field(min_length=1)
    figures: list[PaperFigure] = Field(default=[])
    _path: Path = PrivateAttr(default=FOLDER / f"definition{SUFFIX}")

    @model_validator(mode="before")
    @classmethod
    def _repeat_rows(cls, values: Any) -> Any:
        """Replace a label in the rows of a table by the row that has it in an earlier table."""
        known: dict[Any, Any] = {}
        try:
            for table in values["tables"]:
                table["rows"] = [
                    known.get(row, row) if isinstance(row, str) else row
                    for row in table.get("rows", [])
                ]
                known |= {row["label"]: row for row in table["rows"] if not isinstance(row, str)}
        except (
            TypeError,
            KeyError,
            AttributeError,
        ):  # of another shape, which the fields' own checks report
            pass
        return values

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        """Every name that refers to a table, row, column or text exists, and none is used twice."""
        _check_unique("tables", [table.key for table in self.tables])
        _check_unique("figures", [figure.key for figure in self.figures if figure.key])
        for figure in self.figures:
            _check_known(f'figure "{figure.key}"', [figure.columns], ["", *self.columns])
        for table in self.tables:
            place = f'table "{table.key}"'
            _check_known(place, [table.columns], [*self.columns, *([] if table.rows else [""])])
            labels = [row.label for row in table.rows]
            _check_unique(f"rows of {place}", labels)
            _check_known(
                place,
                table.reference,
                [*labels, *(model for row in table.rows for model in row.published)],
            )
            for row in table.rows:
                texts = [row.data, *([row.where["corpus"]] if "corpus" in row.where else [])]
                _check_known(f'{place}, row "{row.label}"', texts, ["", *self.data])
            columns = self.spread(table.columns)
            heads = [column.head for column in columns]
            _check_known(
                place,
                [*table.headline, *(c.name for c in columns if c.difference)],
                heads,
            )
        return self

    @property
    def name(self) -> str:
        return self._path.stem

    @property
    def comparisons(self) -> list[str]:
        """The comparisons that it names, each with its rehearsal."""
        if isinstance(self.comparison, str):
            given = [self.comparison]
        else:
            given = self.comparison
        named = [name for name in given if name]
        return [*named, *(f"{name}-rehearsal" for name in named)]

    @property
    def shipped(self) -> bool:
        """True if it comes with this package, so that no user can edit it."""
        return self.folder == FOLDER

    @property
    def folder(self) -> Path:
        return self._path.parent

    def spread(self, key: str) -> list[PaperColumn]:
        """The columns of a set, those with `each` spread out."""
        return [one for column in self.columns.get(key, []) for one in column.spread()]

    def family(self, base: str) -> str:
        """The family of presets of a base model of the published file."""
        return self.families.get(base, base)

    def same_base(self, base: str, ours: str) -> bool:
        """Whether our name of a base model means the weights that the published file calls `base`."""
        return ours == base or ours in self.bases.get(base, [])

    def find_published_base(self, base_model: str) -> str:
        """Return the name of a base model in the published file; "" for one that the paper does not
        have.
        """
        return next((base for base in self.bases if self.same_base(base, base_model)), "")

    @cached_property
    def weights_of_rows(self) -> frozenset[str]:
        """The weights that rows of the paper name as theirs, and that are none of its base models."""
        named = {row.weights for table in self.tables for row in table.rows}
        return frozenset(name for name in named if not self.find_published_base(name))

    def published_rows(self, file: str = "") -> list[Published]:
        """The rows of a published CSV file: next to the definition, else in the packages that carry
        such files.

        Raises:
            InputError: no such file, or not a CSV file with the columns of published numbers.
        """
        import pandas as pd

        name = file or self.published
        places = [self.folder / name, *(folder / name for folder in folders())]
        path = next((path for path in places if path.is_file()), None)
        if path is None:
            raise InputError(
                f'definition "{self.name}": no published file "{name}" next to it or in a package',
                file=self.name,
            )
        try:
            rows = pd.read_csv(path, dtype=str, keep_default_na=False).fillna("")
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read as CSV ({error})", file=path) from None
        if lacking := sorted(PUBLISHED_COLUMNS - set(rows.columns)):
            raise InputError(f"lacks the columns {', '.join(lacking)}", file=path)
        found = []
        for row in rows.to_dict("records"):
            found.append({str(key): value for key, value in row.items()})
        return found


def _check_unique(what: str, names: Sequence[str]) -> None:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f'{what}: "{twice[0]}" is defined twice')


def _check_known(place: str, names: Sequence[Any], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            near = nearest(str(name), list(known))
            raise ValueError(
                f'{place}: unknown "{name}"{near}; known: {", ".join(filter(None, known)) or "none"}'
            )


def names() -> list[str]:
    """The definitions that ship with this package."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def load(name: str) -> Definition | None:
    """A definition by its name or its file; None when no definition has that name.

    Raises:
        InputError: no such file, not TOML, or not a definition; one line with the place.
    """
    if not name.endswith(SUFFIX) and name not in names():
        return None
    if name.endswith(SUFFIX):
        path = Path(name)
    else:
        path = FOLDER / f"{name}{SUFFIX}"
    definition = Definition.parse(read_toml(path), str(path))
    definition._path = path
    return definition
