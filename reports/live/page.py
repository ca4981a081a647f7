"""One page of what runs now in a work directory: it needs nothing else, and looks as the reports do."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harness.files.printable import visible
from harness.live.state import State
from reports.live.view import view
from reports.write.html import TEMPLATES

OWN = Path(__file__).parent / "templates"
IN_FULL = ("running", "dead", "paused", "cancelled", "interrupted", "failed")  # what a reader may want to act on
MOST_FULL = 4


def page(states: Sequence[State], now: float) -> str:
    """The first of the states whole, and others that have not ended; the rest by a line each.

    Every text is escaped by the template engine; only our own style and script are not.
    """
    full = [state for i, state in enumerate(states) if i == 0 or state.phase in IN_FULL][:MOST_FULL]
    others = [state for state in states if all(state is not one for one in full)]
    running = any(state.phase == "running" for state in full)
    template, fixed = _template()
    every = max((state.every for state in full if state.phase == "running"), default=0.0)
    html: str = template.render(
        **fixed,
        views=[view(state, now) for state in full],
        others=[view(state, now) for state in others],
        running=running,
        now=now,
        every=every,
    )
    return html


@cache
def _template() -> tuple[Any, dict[str, Any]]:
    """The template, read once, and what no state changes."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(OWN),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    script = (OWN / "live.js").read_text(encoding="utf-8")
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8") + (OWN / "live.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    fixed = {
        "style": Markup(style),  # noqa: S704 - our own files
        "script": Markup(script),  # noqa: S704 - our own file
        "script_hash": f"sha256-{digest}",
    }
    return environment.get_template("live.html.j2"), fixed
