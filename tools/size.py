"""Print code lines (no blank lines, comments or docstrings) and files by folder, for the product,
tests and tools.

python tools/size.py [FOLDER]

FOLDER is a checkout (default: this one); the Python files that git tracks there are counted.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from collections import defaultdict
from pathlib import Path

PRODUCT = ("harness", "methods", "studies", "reports")
# Planning, running, executors, identity, live view, the loop of studies, the Python interface, and
# the commands of comparisons and studies. Not counted: the commands `list`, `doctor`, `train`,
# `evaluate` and `check-method`, and what studies define (studies/definition, studies/samplers.py)
# and show (studies/show).
SPINE = (
    "harness/api",
    "harness/cli.py",
    "harness/executors",
    "harness/results/spec.py",
    "harness/runs",
    "harness/commands/__init__.py",
    "harness/commands/compare.py",
    "harness/commands/options.py",
    "harness/commands/status.py",
    "harness/commands/terminal.py",
    "reports/live.py",
    "reports/with_report.py",
    "studies/proposer.py",
    "studies/storage.py",
    "studies/study_api.py",
    "studies/study_command.py",
    "studies/trials.py",
    "studies/tune.py",
)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """The number of lines of Python source that hold a token other than a comment or a docstring."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        # A docstring, or a string under an attribute that documents it: an expression that is only
        # a string.
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            code.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(code)


def folder_of(file: Path) -> str:
    """The folder that a file is counted in: two levels of `harness`, one level of everything else."""
    parts = file.parts
    if len(parts) == 1:
        return "."
    return "/".join(parts[:2]) if parts[0] == "harness" and len(parts) > 2 else parts[0]


def main() -> None:
    """Print a line for each folder, the largest first, and the totals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    root: Path = parser.parse_args().folder
    tracked = subprocess.run(
        ["git", "-C", root, "ls-files", "*.py"], capture_output=True, text=True, check=True
    ).stdout
    sizes: dict[str, list[int]] = defaultdict(list)
    spine: list[int] = []
    for file in map(Path, tracked.splitlines()):
        if (root / file).is_file():  # not deleted since
            count = code_lines((root / file).read_text(encoding="utf-8"))
            sizes[folder_of(file)].append(count)
            spine += [count] if any(file.is_relative_to(part) for part in SPINE) else []
    for folder, counts in sorted(sizes.items(), key=lambda item: -sum(item[1])):
        print(f"{folder:24} {sum(counts):7,} code lines {len(counts):4} files")
    totals = {"spine": spine}
    for title, names in {"product": PRODUCT, "tests": ("tests",), "tools": ("tools",)}.items():
        totals[title] = [
            count
            for folder, group in sizes.items()
            if folder.split("/")[0] in names
            for count in group
        ]
    for title, counts in totals.items():
        print(f"{title}: {sum(counts):,} code lines in {len(counts)} files")


if __name__ == "__main__":
    main()
