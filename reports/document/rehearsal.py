"""The mark of a rehearsal, on every table and figure of a report that holds runs of one."""

from __future__ import annotations

from dataclasses import replace

from reports.document.blocks import Block, Document, Figure
from reports.document.table import Table

MARK = "[rehearsal]"
SENTENCE = (
    "Rehearsal: small stand-ins for base models, texts and numbers of training steps show that every row runs; the "
    "numbers say nothing of the methods and join none of a paper."
)


def marked(document: Document) -> Document:
    """The document with the mark in every title and the sentence under every table and figure."""
    sections = [replace(section, blocks=[_marked(block) for block in section.blocks]) for section in document.sections]
    headline = f"{SENTENCE} {document.headline}".strip()
    return replace(document, title=f"{document.title} {MARK}", headline=headline, sections=sections)


def _marked(block: Block) -> Block:
    if isinstance(block, Table):
        return replace(block, title=f"{block.title} {MARK}", legend=(SENTENCE, *block.legend))
    if isinstance(block, Figure):
        return replace(block, title=f"{block.title} {MARK}", caption=f"{SENTENCE} {block.caption}".strip())
    return block
