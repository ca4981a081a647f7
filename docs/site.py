"""`python -m docs.site OUT`: build the documentation site with Sphinx. It needs no network and
fails on any warning.

The sources are collected in a folder laid out like the repository, so that relative links hold: the
Markdown pages, and the pages that are made from the code (methods, commands, notebooks).
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

from docs import answer, command_pages, method_pages, notebook_pages
from docs.make import REPOSITORY, published_numbers
from harness.errors import InputError
from harness.files.printable import markdown_text, tell_error
from harness.files.reading import read_text

CONTENTS = {
    "Tutorials": [
        "tutorials/your-data",
        "tutorials/first-comparison",
        "tutorials/your-own-loss",
        "tutorials/library-loss",
        "tutorials/authors-script",
        "tutorials/study",
        "tutorials/paper",
        "tutorials/your-scores",
    ],
    "Notebooks": ["notebooks/first-comparison", "notebooks/own-loss"],
    "How to": [
        "how-to/data",
        "how-to/losses-and-scripts",
        "how-to/models",
        "how-to/evaluate",
        "how-to/reports",
        "why",
        "how-to/runs-of-others",
        "how-to/other-tools",
        "how-to/plan-and-decide",
        "how-to/ci",
        "how-to/trouble",
    ],
    "Explanation": [
        "concepts",
        "fairness",
        "statistics",
        "validation",
        "contamination",
        "executors",
        "clusters",
        "live",
        "robustness",
        "speed",
        "census",
        "prediction",
        "architecture",
    ],
    "Reference": [
        "methods",
        "methods/index",
        "rows/index",
        "mini-recipes",
        "api/index",
        "commands",
        "reference",
        "published",
        "licences",
        "../harness/embedded/README",
        "../CHANGELOG",
        "../CONTRIBUTING",
    ],
}
"""The contents at the side of every page, as paths from docs/."""
API = ["functions", "methods", "tasks"]
_TITLED = re.compile(r'^```(?P<language>\w+) title="(?P<title>.+)"$', re.MULTILINE)


def collect(to: Path) -> dict[str, str]:
    """Write the sources of the site into a folder; return the methods of packages that have no
    page, with the reasons.

    Raises:
        InputError: a page cannot be read, or is not UTF-8.
    """
    docs = REPOSITORY / "docs"
    files = [
        *docs.rglob("*.md"),
        *(docs / f"{page}.md" for page in CONTENTS["Reference"] if page.startswith("..")),
    ]
    pages = {str(file.resolve().relative_to(REPOSITORY)): read_text(file) for file in files}
    of_methods, without = method_pages.pages()
    pages |= {f"docs/methods/{name}": text for name, text in of_methods.items()}
    pages["docs/commands.md"] = command_pages.page()
    pages["docs/published.md"] += "\n" + published_numbers()
    pictures = to / "docs" / "notebook_files"
    shutil.copytree(notebook_pages.NOTEBOOKS, pictures)
    pages |= {
        f"docs/{name}.md": notebook_pages.page(Path(name).name, pictures)
        for name in CONTENTS["Notebooks"]
    }
    rows = answer.row_pages()
    pages |= rows
    pages["docs/rows/index.md"] = _list_rows(rows)
    pages["docs/index.md"] = _link_rows(pages["docs/index.md"], rows)
    pages["docs/api/index.md"] += _contents("", API)
    pages["docs/index.md"] += "".join(
        _contents(caption, names) for caption, names in CONTENTS.items()
    )
    for page, text in pages.items():
        (to / page).parent.mkdir(parents=True, exist_ok=True)
        text = _TITLED.sub(r"```{code-block} \g<language>\n:caption: \g<title>\n", text)
        (to / page).write_text(text, encoding="utf-8")
    shutil.copytree(docs / "static", to / "docs" / "static")
    shutil.copytree(REPOSITORY / "reports" / "images", to / "reports" / "images")
    shutil.copy(docs / "conf.py", to / "docs")
    return without


def _link_rows(page: str, rows: dict[str, str]) -> str:
    """Return the first page with a link from each row of its table to the row's page, and to the
    live page.
    """

    def link(label: str) -> str:
        name = answer.name_page(label)
        return f"[{markdown_text(label)}](rows/{name}.md)"

    live = f'<p><a href="../{answer.LIVE}/index.html">Sort the rows, and compare any two of them</a></p>'
    shown = answer.answer(link, shown=len(rows))
    head, begin, rest = page.partition("<!-- made: answer -->\n")
    _, end, tail = rest.partition("<!-- end -->")
    return f"{head}{begin}\n{shown}\n{live}\n\n{end}{tail}"


def _list_rows(rows: dict[str, str]) -> str:
    """Return the page that lists the page of each row."""
    names = "\n".join(sorted(Path(row).stem for row in rows))
    text = "This page lists the rows that ship, each with its score, settings and command."
    return f"# Rows that ship\n\n{text}\n\n```{{toctree}}\n:maxdepth: 1\n\n{names}\n```\n"


def _contents(caption: str, pages: list[str]) -> str:
    lines = "\n".join([f":caption: {caption}", "", *pages] if caption else ["", *pages])
    return f"\n```{{toctree}}\n:hidden:\n{lines}\n```\n"


def build(out: Path) -> int:
    """Build the site into a folder; the exit code of Sphinx, 0 without any warning, or 1 if a method
    of a package has no page.
    """
    with tempfile.TemporaryDirectory() as folder:
        without = collect(Path(folder))
        code = build_main(
            ["-q", "-W", "--keep-going", "-b", "html", "-c", f"{folder}/docs", folder, str(out)]
        )
    answer.write_live_page(out)
    (out / "index.html").write_text(
        '<meta http-equiv="refresh" content="0; url=docs/index.html">', encoding="utf-8"
    )
    for name, reason in without.items():
        tell_error(f"docs: the method {name} has no page: {reason}")
    return code or int(bool(without))


def main(arguments: list[str]) -> int:
    """Build the site into the folder that is named, or `build/site`; return the exit code."""
    out = Path(arguments[0]) if arguments else REPOSITORY / "build" / "site"
    try:
        return build(out)
    except InputError as error:
        tell_error(f"docs: {error}")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
