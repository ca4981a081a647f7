"""Who sent rows, when, and where more is said, as an archive or the lines of a table state it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.printable import one_line
from harness.files.reading import read_json
from harness.results.elsewhere import MANIFEST

if TYPE_CHECKING:
    import pandas as pd

_LINK = re.compile(r"https?://[^\s\"'<>\\]+")


@dataclass(frozen=True)
class Sender:
    """Who sent a row, when, and where more is said; "" where it is not known."""

    name: str = ""
    date: str = ""
    link: str = ""


def check_link(link: str, **where: Any) -> str:
    """Return a link that a page may hold.

    Raises:
        InputError: it is not one of the web.
    """
    if link and (not _LINK.fullmatch(link) or len(link) > 500):
        raise InputError(f"expected a link, https://..., not {one_line(link)[:80]!r}", **where)
    return link


def check_date(text: str, **where: Any) -> str:
    """Return a date.

    Raises:
        InputError: it is none.
    """
    if not text:
        return ""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        message = f"expected a date as 2026-11-28, not {one_line(text)[:80]!r}"
        raise InputError(message, **where) from None


def read_sender(manifest: Path, source: Path) -> Sender:
    """Return who sent an archive, as its pack.json says."""
    if not manifest.is_file():
        return Sender()
    found = read_json(manifest)
    name = found.get("submitter", "")
    link = found.get("link", "")
    if not isinstance(name, str) or not isinstance(link, str):
        raise InputError(f"{MANIFEST}: expected texts as submitter and link", file=source)
    return Sender(one_line(name)[:80], "", check_link(link, file=source, key="link"))


def sender_of_lines(part: pd.DataFrame) -> Sender:
    """Return who sent a row of a table: what its lines state."""
    stated = {}
    for column in ("submitter", "date", "link"):
        lines = part[part[column] != ""].drop_duplicates(column)
        if len(lines) > 1:
            one, two = lines.iloc[0], lines.iloc[1]
            raise InputError(
                f"row {one['row']} has two values, {one[column]} ({one['place']}) and {two[column]}",
                file=two["place"],
                key=f'column "{column}"',
            )
        stated[column] = lines.iloc[0] if len(lines) else None
    texts = {}
    for column, line in stated.items():
        texts[column] = ""
        if line is not None:
            texts[column] = _check_text(column, str(line[column]), str(line["place"]))
    return Sender(texts["submitter"], texts["date"], texts["link"])


def _check_text(column: str, text: str, place: str) -> str:
    """Return what a line states of its sender.

    Raises:
        InputError: a date or link that is none.
    """
    where = {"file": place, "key": f'column "{column}"'}
    if column == "date":
        return check_date(text, **where)
    if column == "link":
        return check_link(text, **where)
    return text[:80]
