"""`python -m docs.notebook_pages [NAME ...]`: run the notebooks and keep their outputs, which the
site's pages show.

It takes minutes. Kept are results alone: no progress, no warnings of libraries.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from docs.make import REPOSITORY

NOTEBOOKS = REPOSITORY / "docs" / "notebooks"
_SHOWN = ("image/png", "text/html", "text/plain")  # the first that an output has


def code_cells(name: str) -> list[str]:
    """The code of a notebook, cell by cell."""
    return ["".join(cell["source"]) for cell in _read(name)["cells"] if cell["cell_type"] == "code"]


def executed(
    name: str, folder: Path, *, timeout: int = 1200, shorter: Callable[[str], str] = str
) -> Any:
    """A notebook with the outputs that its cells have now, run in a folder.

    Args:
        timeout: seconds that one cell may take.
        shorter: what is made of the code of each cell before it is run.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    import nbformat
    from nbclient import NotebookClient

    text = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = shorter(cell.source)
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(
        notebook, timeout=timeout, iopub_timeout=60, resources=place
    ).execute()  # pictures may come late
    return notebook


def results(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a cell has to show, without what was said on the way."""
    kept = []
    for output in outputs:
        data = output.get("data", {})
        best = next((kind for kind in _SHOWN if kind in data), None)
        if best is not None and "<progress" not in _text(data[best]):
            kept.append({"output_type": "display_data", "data": {best: data[best]}, "metadata": {}})
    return kept


def page(name: str, pictures: Path) -> str:
    """A notebook in Markdown, as the site has it; its pictures are written into a folder."""
    parts = []
    for cell in _read(name)["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            parts.append(_shown(output["data"], pictures / f"{name}-{len(parts)}.png"))
    download = f"[Download this notebook](../{pictures.name}/{name}.ipynb)"
    head, _, rest = "\n\n".join(parts).partition("\n")
    return f"{head}\n\n{download}\n{rest}\n"


def _shown(data: Mapping[str, Any], picture: Path) -> str:
    if "image/png" in data:
        picture.write_bytes(base64.b64decode(_text(data["image/png"])))
        return f"![](../{picture.parent.name}/{picture.name})"
    if "text/html" in data:
        return f'```{{raw}} html\n<div class="output">{_text(data["text/html"])}</div>\n```'
    return f"```text\n{_text(data['text/plain'])}\n```"


def _text(lines: str | list[str]) -> str:
    return "".join(lines)


def _read(name: str) -> Any:
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))


def keep(name: str) -> None:
    """Run a notebook whole and write its results into it."""
    written = _read(name)
    with tempfile.TemporaryDirectory() as folder:
        ran = executed(name, Path(folder))
    for cell, now in zip(written["cells"], ran.cells, strict=True):
        if cell["cell_type"] == "code":
            cell["outputs"] = results(now.outputs)
    text = json.dumps(written, indent=1, ensure_ascii=False) + "\n"
    (NOTEBOOKS / f"{name}.ipynb").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for asked in sys.argv[1:] or sorted(file.stem for file in NOTEBOOKS.glob("*.ipynb")):
        keep(asked)
