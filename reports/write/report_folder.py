"""The folder of a report: its files in the requested formats, and none of an earlier build that it
no longer has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.config import nearest
from harness.errors import InputError, RunError
from harness.files.atomic import sweep, write_atomic
from harness.files.links import refuse_link, refuse_links_below
from harness.files.reading import read_json
from reports.document.blocks import Document, slug
from reports.write import latex
from reports.write import markdown as render
from reports.write.exports import ro_crate
from reports.write.html import page

FORMATS = ("html", "md", "latex", "csv")  # those that are written unless others are asked for
_PLACES = {
    "html": "index.html",
    "md": "report.md",
    "latex": "report.tex",
    "csv": "tables",
    "pdf": "report.pdf",
    "json": "data.json",
    "ro-crate": "ro-crate-metadata.json",
    "every-eval-ever": "data",
}
ALL_FORMATS = (*FORMATS, "pdf", "ro-crate", "every-eval-ever")
# folders of a report in which a build removes what it no longer writes
_OWNED = (
    "tables",
    "figures",
    "data",
)


def check_formats(formats: Sequence[str]) -> None:
    """Raises:
    InputError: one that is not known.
    """
    for one in formats:
        if one not in ALL_FORMATS:
            known = list(ALL_FORMATS)
            raise InputError(
                f'unknown report format "{one}"{nearest(one, known)}; known: {", ".join(known)}',
                key="format",
            )


def write(
    document: Document,
    folder: Path,
    formats: Sequence[str] = FORMATS,
    *,
    extra: Mapping[str, str],
    data: dict[str, Any],
) -> dict[str, Path]:
    """Write a document into a folder.

    Args:
        extra: further files of the report by their path ("tables/joined.csv"), which replace those
            of tables.
        data: further keys of data.json and of the data in the page.

    Raises:
        InputError: the folder has links that lead out of it.
        RunError: the folder cannot be written, or the PDF cannot be made.
    """
    _refuse_links(folder)
    files = _files_of_parts(document, formats)
    files |= extra  # these replace tables of the same name
    if _is_typeset(formats):
        tex = latex.latex(document)
    else:
        tex = ""
    data = {
        **data,
        "title": document.title,
        "headline": document.headline,
        "answer": document.answer or document.headline,
        "facts": [list(fact) for fact in document.facts],
        "tables": {table.key: table.as_dict() for table in document.tables()},
        **document.origin,
    }
    if "md" in formats:
        files["report.md"] = render.markdown(document)
    if "latex" in formats:
        files["report.tex"] = tex
    if "html" in formats:
        files["index.html"] = page(document, data)
    if "ro-crate" in formats:
        pages = ["report.pdf"] if "pdf" in formats else []
        files["ro-crate-metadata.json"] = ro_crate(document, [*files, *pages, "data.json"])
    # Last of the text, since it lists what is there: the next build removes what it no longer
    # writes, and nothing else.
    listed = data | {"files": sorted(files)}
    try:
        _remove_stale(folder, set(files))
        for name, content in files.items():
            _put(folder / name, content)
        text = json.dumps(listed, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        _put(folder / "data.json", text)
        if "pdf" in formats:
            _put(folder / "report.pdf", latex.pdf(tex, folder))
    except OSError as error:
        raise RunError(
            f"{folder}: cannot write the report ({error.strerror}); the runs are untouched"
        ) from None
    return {kind: folder / _PLACES[kind] for kind in (*formats, "json")}


def _refuse_links(folder: Path) -> None:
    """Refuse links that lead out of a folder, where a report writes or removes something.

    The folder may be any of the user's, and is not searched as a whole.

    Raises:
        InputError: there is one.
    """
    for place in (*_PLACES.values(), *_OWNED):
        refuse_link(folder / place, folder)
    for place in _OWNED:
        refuse_links_below(folder / place, folder)


def _is_typeset(formats: Sequence[str]) -> bool:
    return "latex" in formats or "pdf" in formats


def _files_of_parts(document: Document, formats: Sequence[str]) -> dict[str, str | bytes]:
    """Return the files of all figures and tables by their path."""
    typeset = _is_typeset(formats)
    files: dict[str, str | bytes] = {}
    for figure in document.figures():
        place = f"figures/{slug(figure.key)}"
        if typeset or "html" in formats or "md" in formats:
            files[f"{place}.svg"] = figure.svg
            files[f"{place}.png"] = figure.png
        if typeset:
            files[f"{place}.pdf"] = figure.pdf
    for table in document.tables():
        place = f"tables/{slug(table.key)}"
        if "csv" in formats:
            files[f"{place}.csv"] = render.csv_table(table)
        if "latex" in formats:
            files[f"{place}.tex"] = latex.table_file(table)
    return files


def _put(path: Path, content: str | bytes) -> None:
    """Replace a file in one step, without waiting for the disk: a report can be rebuilt."""
    sweep(path)  # what a killed build left
    write_atomic(path, content, durable=False)


def _remove_stale(folder: Path, wanted: set[str]) -> None:
    """Delete what an earlier build listed as its own and this one does not write."""
    try:
        listed = read_json(folder / "data.json").get("files")
    except InputError:
        return
    if isinstance(listed, list):
        names = {name for name in listed if isinstance(name, str)}
    else:
        names = set()
    for name in names - wanted:
        parts = Path(name).parts
        if len(parts) > 1 and parts[0] in _OWNED and ".." not in parts:
            sweep(folder / name)
            (folder / name).unlink(missing_ok=True)
