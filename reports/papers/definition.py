"""What a paper's report consists of: its tables, which of our scores its columns are, and which of our rows its rows.

A definition is a TOML file. Those of the four papers lie in `reports/papers/definitions`; a user names their own.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from harness.config import Config, nearest
from harness.files.reading import read_toml
from reports.papers.figure_spec import PaperFigure
from reports.papers.reported import ONE, Reported

FOLDER = Path(__file__).parent / "definitions"
SUFFIX = ".toml"

# What an average is taken over is code, not configuration: `column_values` knows these, and "mteb:CATEGORY" and
# "mteb-task:NAME".
AVERAGES = (
    "sts", "sts-mean", "sts-wmean", "sts-years", "transfer", "downstream", "downstream-without-snli", "probing", "half",
    "mteb",
)  # fmt: skip
STATISTICS = {"max": 1.0, "q75": 0.75, "q50": 0.5}


class Data(Config):
    """Text that a paper trained on."""

    text: str = Field(description="as a reader knows it")
    uris: list[str] = Field(default=[], description="what the same text is called here: names of corpora, whole URIs")
    count: int | None = Field(default=None, description="number of its entries", ge=1)
    tolerance: float = Field(default=0, description="share of the entries by which a copy may differ", ge=0, lt=1)
    sha256: list[str] = Field(default=[], description="its content hashes: equal content is this text by any name")

    @model_validator(mode="after")
    def _whole_names(self) -> Self:
        if pattern := next((uri for uri in self.uris if "*" in uri), ""):
            raise ValueError(f'data "{self.text}": "{pattern}" is a pattern; name the text, as wiki1m or hf://...')
        return self


class PaperColumn(Config):
    """A column: what the published file calls it, and which of our scores it is.

    With `each`, one column for every name in it, "{}" standing for the name in `published`, `title`, `task`, `average`.
    """

    each: list[str] = Field(default=[])
    published: str = Field(default="", description="task of the published file; empty: a column of ours alone")
    published_metric: str = Field(default="", description="its metric, where a task has several")
    title: str = ""
    sub: str = ""
    group: str = ""
    task: str = Field(default="", description="our task; empty (and no average): a column of the paper alone")
    metric: str = "spearman"
    aggregation: str = ""
    split: str = "test"
    source: str = "senteval"
    average: str = ""
    statistic: Literal["", "max", "q75", "q50"] = Field(default="", description="over the trials of a study")
    delta: str = Field(default="", description="title of the column whose difference to the reference row this is")
    sign: Literal[-1, 1] = Field(default=1, description="of the difference: -1 is the reference minus the row")
    scale: float = 100
    digits: int = Field(default=2, ge=0, le=6)
    better: Literal["higher", "lower", ""] = ""
    protocol: dict[str, str] = Field(default={}, description="what our protocol must say for numbers to be comparable")
    unstated: str = Field(default="", description="what the paper does not say, so that nothing is comparable")
    cannot: str = Field(default="", description="why no run can make its numbers on public data")

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        ways = [w for w in ("task", "average", "statistic", "delta") if getattr(self, w)]
        if len(ways) > 1:
            raise ValueError(f'column "{self.title}": {" and ".join(ways)} exclude each other')
        known = self.average in AVERAGES or self.average.startswith(("mteb:", "mteb-task:"))
        if self.average and not known:
            raise ValueError(f'unknown average "{self.average}"{nearest(self.average, list(AVERAGES))}')
        return self

    @property
    def measured(self) -> bool:
        """Something of ours can stand in it."""
        return bool(self.task or self.average or self.statistic or self.delta)

    def named(self, name: str) -> PaperColumn:
        fields = ("published", "title", "task", "average")
        filled = {field: getattr(self, field).replace("{}", name) for field in fields}
        filled["published"] = filled["published"] or name
        filled["title"] = filled["title"] or name
        return self.model_copy(update={**filled, "each": []})


class PaperRow(Config):
    """A row of a table: the published models that it is, and which of our runs it is.

    `where` selects by configuration: key -> value, or a list of values any of which will do; "*" in a text stands for
    anything in the last part of a path; keys "corpus.uri", "corpus.count" look at the training data, "base_model" at
    what was started from. `preset` is the paper's recipe for the row: a run that differs from it in an option that
    neither `where` fixes nor the paper scans is another recipe's.
    """

    label: str
    published: list[str] = Field(default=[])
    method: str = Field(default="", description="our method; empty: a row of the paper alone")
    where: dict[str, Any] = Field(default={})
    supervised: bool = False
    data: str = Field(default="", description="key of the text that the paper trained it on")
    same_weights: list[str] = Field(default=[], description="the very weights of the published row")
    by_text: bool = Field(default=False, description="a run on another text than `data` is none of this row")
    preset: str = Field(default="", description="our preset with the paper's settings; empty: it states none")
    scanned: list[str] = Field(default=[], description="options that the paper searched: any value is the paper's")
    reported: Reported | None = Field(default=None, description="what its numbers are made of; empty: the table's")
    study: str = Field(default="", description="our study that makes the row's numbers, in a table of studies")
    cannot: str = Field(default="", description="why no run can make its numbers on public data")
    reference: str = Field(default="", description="label of the row that its differences go to")


class PaperTable(Config):
    """A table of the paper. `published`: its names in the published file."""

    key: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=80)
    title: str
    caption: str = ""
    kind: Literal["tasks", "study", "spaces", "layers"] = "tasks"
    published: list[str] = Field(default=[])
    columns: str = Field(default="", description="key of the column set")
    suites: list[str] = Field(default=[], description="our suites that fill it, for the commands")
    headline: list[str] = Field(default=[], description="titles of the columns that the page joins row by row")
    reference: str = Field(default="", description="label of the row that differences go to")
    reference_model: str = Field(default="", description="its published model, where the row has several")
    transposed: bool = Field(default=False, description="columns of the definition as lines")
    notes: list[str] = Field(default=[])
    reported: Reported | None = Field(default=None, description="what its numbers are made of; empty: the paper's")
    rows: list[PaperRow] = Field(default=[])
    fields: dict[str, str] = Field(default={}, description="spaces: published task -> our config key")
    used_with: dict[str, dict[str, Any]] = Field(
        default={}, description="spaces: our config key -> what a run must have for its value to count as tried"
    )
    papers: list[str] = Field(default=[], description="spaces: how the paper's name begins in the file")

    def reference_of(self, row: PaperRow) -> PaperRow | None:
        """The row that a row's differences go to; None where there is none."""
        label = row.reference or self.reference
        return next((one for one in self.rows if one.label == label), None) if label else None


class Definition(Config):
    """A paper's report. Keys of `bases` are base models as the published file names them."""

    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*$")
    title: str
    paper: str
    description: str = ""
    published: str = Field(description="CSV file of published numbers")
    bases: dict[str, list[str]] = Field(default={})
    families: dict[str, str] = Field(
        default={}, description="base model -> its family of recipes, where that is not its name"
    )
    statements: dict[str, str] = Field(
        default={}, description="published table that is a passage of text -> what its numbers are made from"
    )
    reported: Reported = Field(default=ONE, description="what a number is made of: runs, and whether mean or best")
    data: dict[str, Data] = Field(default={})
    columns: dict[str, list[PaperColumn]] = Field(default={})
    tables: list[PaperTable] = Field(min_length=1)
    figures: list[PaperFigure] = Field(default=[])
    baseline: str = Field(default="", description="our method that papers of its field hold theirs against")
    folder: Path = Field(default=FOLDER, exclude=True)

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        keyed = [figure.key for figure in self.figures if figure.key]
        for what, names in (("tables", [t.key for t in self.tables]), ("figures", keyed), *self._labels()):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise ValueError(f'{what}: "{twice[0]}" stands there twice')
        for figure in self.figures:
            if fault := figure.fault():
                raise ValueError(fault)
            if figure.columns and figure.columns not in self.columns:
                known = ", ".join(self.columns) or "none"
                raise ValueError(f'figure "{figure.key}": no column set "{figure.columns}"; known: {known}')
        for table in self.tables:
            if table.kind != "spaces" and table.columns not in self.columns:
                known = ", ".join(self.columns) or "none"
                raise ValueError(f'table "{table.key}": no column set "{table.columns}"; known: {known}')
            labels = [row.label for row in table.rows]
            for row in table.rows:
                for name, pool in ((row.reference, labels), (row.data, list(self.data))):
                    if name and name not in pool:
                        raise ValueError(f'table "{table.key}", row "{row.label}": no "{name}"{nearest(name, pool)}')
            if table.reference and table.reference not in labels:
                raise ValueError(f'table "{table.key}": no row "{table.reference}"{nearest(table.reference, labels)}')
            titles = [column.title for column in self.columns_of(table)]
            for title in (*table.headline, *(c.delta for c in self.columns_of(table) if c.delta)):
                if title not in titles:
                    raise ValueError(f'table "{table.key}": no column "{title}"{nearest(title, titles)}')
        return self

    def _labels(self) -> list[tuple[str, list[str]]]:
        return [(f'rows of table "{table.key}"', [row.label for row in table.rows]) for table in self.tables]

    def columns_of(self, table: PaperTable) -> list[PaperColumn]:
        """The columns of a table, those with `each` spread out."""
        columns: list[PaperColumn] = []
        for column in self.columns.get(table.columns, []):
            columns += [column.named(name) for name in column.each] if column.each else [column]
        return columns

    def reported_as(self, table: PaperTable, row: PaperRow) -> Reported:
        """What a row's published numbers are made of: what the row says, else its table, else the paper."""
        return row.reported or table.reported or self.reported

    def family(self, published: str) -> str:
        """The family of recipes that a base model of the published file belongs to."""
        return self.families.get(published, published)

    def same_base(self, published: str, ours: str) -> bool:
        """Whether our name of a base model means the weights that the published file names."""
        return ours == published or ours in self.bases.get(published, [])


def names() -> list[str]:
    """Definitions that ship with this package."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def baselines() -> frozenset[str]:
    """The methods that the definitions of this package name as baselines."""
    definitions = (load(name) for name in names())
    return frozenset(d.baseline for d in definitions if d is not None and d.baseline)


def is_file(name: str) -> bool:
    """Whether a report's name means a definition file."""
    return name.endswith(SUFFIX)


def load(name: str) -> Definition | None:
    """A definition by its name or its file; None where no definition has that name.

    Raises:
        InputError: no such file, not TOML, or not a definition; one line with the place.
    """
    path = Path(name) if is_file(name) else FOLDER / f"{name}{SUFFIX}"
    if not is_file(name) and name not in names():
        return None
    return Definition.parse({**read_toml(path), "folder": path.parent}, str(path))
