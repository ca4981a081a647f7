"""`python -m docs.site OUT`: the documentation site. It needs no network and fails on any warning.

Sphinx reads Markdown (MyST) from a folder that is put together here: the pages of docs/, those that stand elsewhere in
the repository, and those that are made from the code.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

from docs import command_pages, method_pages, notebook_pages
from docs.make import REPOSITORY

ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "harness/embedded/README.md": "embedded-suite.md",
}
"""Files of the repository -> the pages of the site that they are."""
CONTENTS = {
    "Tutorials": ["first-comparison", "your-own-loss", "study", "paper", "cluster"],
    "Notebooks": ["first-comparison", "own-loss"],
    "How to": ["data", "evaluate", "reports", "runs-of-others", "other-tools", "trouble"],
    "Explanation": [
        "concepts", "fairness", "statistics", "contamination", "executors", "clusters", "live", "explore", "speed",
        "stand-ins", "architecture",
    ],
    "Reference": [
        "methods", "methods/index", "api/index", "commands", "reference", "published", "embedded-suite", "changelog",
        "contributing",
    ],
}  # fmt: skip
"""The contents at the side of every page; tutorials and how-tos have folders of their own."""
API = ["functions", "methods", "objectives", "tasks", "running", "senteval"]
_FOLDERS = {"Tutorials": "tutorials/", "Notebooks": "notebooks/", "How to": "how-to/"}
_LINK = re.compile(r"(?P<image>!?)\[(?P<words>[^\]]+)\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
_TITLED = re.compile(r'^```(?P<language>\w+) title="(?P<title>.+)"$', re.MULTILINE)


def gathered(to: Path) -> None:
    """Put the sources of the site together in a folder."""
    docs = REPOSITORY / "docs"
    texts = {str(file.relative_to(docs)): file.read_text(encoding="utf-8") for file in docs.rglob("*.md")}
    texts |= {page: (REPOSITORY / file).read_text(encoding="utf-8") for file, page in ELSEWHERE.items()}
    texts = {page: _turned(text, page) for page, text in texts.items()}
    texts |= {f"methods/{name}": text for name, text in method_pages.pages().items()}
    texts["commands.md"] = command_pages.page()
    pictures = to / "notebook_files"
    shutil.copytree(notebook_pages.NOTEBOOKS, pictures)
    notebooks = {f"notebooks/{name}.md": notebook_pages.page(name, pictures) for name in CONTENTS["Notebooks"]}
    texts |= {page: _turned(text, page) for page, text in notebooks.items()}
    texts["api/index.md"] += _contents("", API)
    texts["index.md"] += "".join(_contents(caption, pages) for caption, pages in CONTENTS.items())
    for page, text in texts.items():
        (to / page).parent.mkdir(parents=True, exist_ok=True)
        (to / page).write_text(_captioned(text), encoding="utf-8")
    shutil.copytree(docs / "static", to / "static")
    shutil.copy(REPOSITORY / "reports" / "images" / "report.png", to / "static")
    shutil.copy(docs / "conf.py", to)


def _contents(caption: str, pages: list[str]) -> str:
    lines = "\n".join(_FOLDERS.get(caption, "") + page for page in pages)
    head = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{head}\n{lines}\n```\n"


def _captioned(text: str) -> str:
    """Names of files above their blocks, as MyST writes them; code hosts show the other form as a plain block."""
    text = _TITLED.sub(r"```{code-block} \g<language>\n:caption: \g<title>\n", text)
    return re.sub(r"^```sh$", "```{code-block} bash", text, flags=re.MULTILINE)


def _turned(text: str, page: str) -> str:
    """Links to pages of the site; what is no page of it is named without a link."""
    home = {of: file for file, of in ELSEWHERE.items()}.get(page, f"docs/{page}")  # where the text is written

    def turned(link: re.Match[str]) -> str:
        target, anchor = link["target"], link["anchor"] or ""
        if link["image"]:
            return link[0].replace("../reports/images/", "static/")
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
        if file == "README.md":
            file, anchor = "docs/index.md", ""
        file = re.sub(r"^(docs/notebooks/.*)\.ipynb$", r"\1.md", file)
        name = ELSEWHERE.get(file) or (file.removeprefix("docs/") if file.startswith("docs/") else "")
        if not name:
            return link["words"]
        return f"[{link['words']}]({posixpath.relpath(name, posixpath.dirname(page) or '.')}{anchor})"

    return _LINK.sub(turned, text)


def build(out: Path) -> int:
    """Build the site into a folder; the exit code of Sphinx, 0 without any warning."""
    with tempfile.TemporaryDirectory() as temporary:
        sources = Path(temporary) / "source"
        gathered(sources)
        return build_main(["-q", "-W", "--keep-going", "-b", "html", str(sources), str(out)])


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else REPOSITORY / "build" / "site")))
