"""Whether a run was trained on a paper's text: by its name and its size, or by its content."""

from __future__ import annotations

import re

from harness.results.record import Record
from reports.papers.definition import Data

_REVISION = re.compile(r"^(hf://datasets/[^/]+/[^/@?]+)@[^/?]*")
_MOSTLY = 0.95  # of the entries: a run that saw fewer was trained on a part of the text


def is_text(wanted: Data, record: Record) -> bool:
    """Whether a run's text is this one or a part of it: by name, whatever the data set's revision, or by content."""
    corpus = record.corpus or {}
    if corpus.get("sha256") in wanted.sha256:
        return True
    known = {_plain(uri) for uri in wanted.uris}
    return any(isinstance(name, str) and _plain(name) in known for name in (corpus.get("name"), corpus.get("uri")))


def difference(wanted: Data, record: Record) -> str:
    """How a run's training text differs from the paper's; "" where it is the same."""
    corpus = record.corpus or {}
    uri, count, entries = str(corpus.get("uri", "none")), corpus.get("count"), wanted.count
    if corpus.get("sha256") not in wanted.sha256:
        if not is_text(wanted, record):
            amount = f", {count:,} entries" if isinstance(count, int) else ""
            return f"{uri}{amount}; paper: {wanted.text}"
        if entries and isinstance(count, int) and abs(count - entries) > wanted.tolerance * entries:
            return f"{count:,} of {entries:,}"
    seen = record.cost.get("corpus_sentences_seen")
    if entries and seen and seen < _MOSTLY * entries and not record.config.get("patience"):
        return f"{seen:,.0f} of {entries:,} seen"
    return ""


def remark(wanted: Data, record: Record) -> str:
    """What a reader should know of a text that counts as the paper's: that a few of its entries are lacking."""
    count = (record.corpus or {}).get("count")
    if wanted.count and isinstance(count, int) and count != wanted.count and not difference(wanted, record):
        return f"trained on {count:,} of {wanted.count:,} entries"
    return ""


def _plain(uri: str) -> str:
    """A name without what says how it is read: the revision, and which columns hold the text."""
    place, _, query = _REVISION.sub(r"\1", uri).partition("?")
    kept = "&".join(part for part in query.split("&") if part and not part.startswith(("revision=", "columns=")))
    return f"{place}?{kept}" if kept else place
