"""Print code lines (no blank lines, comments or docstrings) and files by folder, for the product, tests and tools.

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
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(source: str) -> int:
    """The number of lines of Python source that hold a token other than a comment or a docstring."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        # A docstring, or a string under an attribute that documents it: an expression that is only a string.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    root: Path = parser.parse_args().folder
    tracked = subprocess.run(["git", "-C", root, "ls-files", "*.py"], capture_output=True, text=True, check=True).stdout
    sizes: dict[str, list[int]] = defaultdict(list)
    for file in map(Path, tracked.splitlines()):
        if (root / file).is_file():  # not deleted since
            sizes[folder_of(file)].append(code_lines((root / file).read_text(encoding="utf-8")))
    for folder, counts in sorted(sizes.items(), key=lambda item: -sum(item[1])):
        print(f"{folder:24} {sum(counts):7,} code lines {len(counts):4} files")
    for title, names in {"product": PRODUCT, "tests": ("tests",), "tools": ("tools",)}.items():
        counts = [count for folder, group in sizes.items() if folder.split("/")[0] in names for count in group]
        print(f"{title}: {sum(counts):,} code lines in {len(counts)} files")


if __name__ == "__main__":
    main()
