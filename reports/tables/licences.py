"""The licences of the data sets that a comparison's rows learned from and were scored on."""

from __future__ import annotations

from collections.abc import Iterator

from harness.sources.corpus.catalogue import CATALOGUE
from harness.tasks.licences import Licence, find_licence
from reports.document.table import EMPTY, Cell, Column, Table, TableRow
from reports.load import RecordedResults

_COLUMNS = (
    Column("data", "Data set", numeric=False),
    Column("used", "Used for", numeric=False),
    Column("licence", "Licence", "as its source states it", numeric=False),
    Column("source", "More", numeric=False, aside=True),
)
_EMBEDDED = "embedded:"


def licence_table(comparison: RecordedResults) -> list[Table]:
    """Return a line for each data set with a name; none for own files, whose licence is not known."""
    lines = []
    for name, used, licence in dict.fromkeys(_data_sets(comparison)):
        link = EMPTY
        if licence.link.startswith(("https://", "http://")):
            link = Cell(licence.link.split("://", 1)[1], code=True)
        lines.append(TableRow((Cell(name), Cell(used), Cell(licence.text), link)))
    if not lines:
        return []
    caption = "Read the terms at the source before you pass texts on; own files are not listed."
    return [Table("licences", "Licences of the data sets", caption, _COLUMNS, tuple(lines))]


def _data_sets(comparison: RecordedResults) -> Iterator[tuple[str, str, Licence]]:
    """Yield name, use and licence of each data set, with repeats."""
    by_uri = {corpus.uri: corpus for corpus in CATALOGUE.values()}
    for record in comparison.records:
        uri = str((record.corpus or {}).get("uri", ""))
        if uri.startswith(_EMBEDDED):
            licence = find_licence("embedded", uri)
            if licence is not None:
                yield uri, "training", licence
        elif uri in by_uri:
            corpus = by_uri[uri]
            yield uri, "training", Licence(corpus.licence, _page_of(uri))
    for kind in comparison.score_kinds:
        name = kind.task.rpartition("geometry:")[2]
        licence = find_licence(kind.source, name)
        if licence is not None:
            yield name, "evaluation", licence


def _page_of(uri: str) -> str:
    """Return the page of a data set of the hub; "" for others."""
    scheme, _, path = uri.partition("://")
    if scheme != "hf":
        return ""
    parts = path.partition("?")[0].split("/")
    return f"https://huggingface.co/{'/'.join(parts[:3])}"
