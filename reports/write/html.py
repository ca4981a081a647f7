"""A document as one self-contained HTML page: style, script, figures and data inside, nothing from
elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any
from urllib.parse import quote

from harness.files.printable import ACTING, visible
from reports.document.blocks import Document, Figure, slug
from reports.document.table import Table
from reports.figures.style import inline
from reports.write.environment import TEMPLATES, environment
from reports.write.markdown import csv_table

SCRIPTS = ("page.js", "tables.js")


def _footnotes(table: Table) -> dict[str, dict[str, str]]:
    footnotes = {}
    for text, letter in table.footnotes().items():
        footnotes[text] = {"letter": letter, "id": f"table-{slug(table.key)}-note-{letter}"}
    return footnotes


def _slots(table: Table) -> list[dict[str, int]]:
    """Room that every cell of a column keeps for a spread and a mark, so that its numbers are
    aligned.
    """
    columns = []
    for j in range(len(table.columns)):
        columns.append([row.cells[j] for row in table.rows])
    slots = []
    for cells in columns:
        slots.append(
            {
                "worse": int(any(c.worse for c in cells)),
                "spread": max((len(c.spread) for c in cells), default=0),
            }
        )
    return slots


def page(document: Document, data: dict[str, Any]) -> str:
    """Render the page. Every text is escaped by the template engine; only our own style, script and
    SVG are not.
    """
    from markupsafe import Markup, escape

    templates = environment(visible, autoescape=True)

    def svg(figure: Figure) -> Markup:
        return Markup(inline(figure, f"figure-{slug(figure.key)}"))  # noqa: S704 - matplotlib's own XML, which escapes the labels in it

    def breakable(text: str) -> Markup:
        """Long identifiers may break after "_" and "/"."""
        return Markup(re.sub(r"([_/])(?=.)", r"\1<wbr>", str(escape(visible(text)))))  # noqa: S704 - escaped before

    templates.filters.update(
        breakable=breakable,
        inline=svg,
        footnotes=_footnotes,
        slots=_slots,
        csv_uri=lambda table: f"data:text/csv;charset=utf-8,{quote(csv_table(table))}",
    )
    scripts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS]
    script = "\n".join(scripts)
    sha256 = hashlib.sha256(script.encode()).digest()
    digest = base64.b64encode(sha256).decode()
    embedded = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    # "<" cannot end the script element when it is written as an escape, which JSON reads as the
    # same character.
    embedded = embedded.replace("<", "\\u003c")
    embedded = ACTING.sub(lambda match: f"\\u{ord(match[0]):04x}", embedded)
    return templates.get_template("page.html.j2").render(
        document=document,
        style=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        script_hash=f"sha256-{digest}",
        data=Markup(embedded),  # noqa: S704 - JSON without "<", inside an element that holds no markup
    )
