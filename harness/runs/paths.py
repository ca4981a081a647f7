"""Paths of this machine in what is passed on: replaced where nothing depends on them, named where
ids do.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.files.printable import redacted

_HOME = re.compile(r"(?:/home/|/Users/|/root\b|[A-Za-z]:\\{1,2}Users\\{1,2})[^\s\"'<>,;:)\]}]*")


def private_paths(text: str) -> list[str]:
    """Return the paths below a home or the working folder that a text names, each once.

    >>> private_paths('read /home/ann/data.csv and /usr/share/dict')
    ['/home/ann/data.csv']
    """
    here = re.escape(str(Path.cwd()))
    below = re.findall(rf"{here}[^\s\"']*", text)
    found = [*_HOME.findall(text), *below]
    return list(dict.fromkeys(found))


class HiddenPaths:
    """Replaces paths of this machine, and what may be a credential.

    Args:
        workdir: the work directory.
        places: path of an own file -> its name in the archive.
    """

    def __init__(self, workdir: Path, places: Mapping[Path, str]) -> None:
        known = {str(path): place for path, place in places.items()}
        folders = {
            workdir.absolute(): "WORKDIR",
            Path.cwd(): ".",
            Path(sys.prefix): "PYTHON",
        }
        for folder, name in folders.items():
            if len(folder.parts) > 1:
                known[str(folder)] = name
        longest_first = sorted(known, key=len, reverse=True)
        self._known = {path: known[path] for path in longest_first}

    def in_text(self, text: str) -> str:
        """Return a text without them; a path in a home becomes "~" and its last part."""
        for path, name in self._known.items():
            whole = re.compile(rf"{re.escape(path)}(?![\w-])")
            text = whole.sub(name.replace("\\", r"\\"), text)
        return redacted(_HOME.sub(_last_part, text))

    def in_tree(self, tree: Any) -> Any:
        """Return a tree of JSON whose texts are without them; keys too."""
        if isinstance(tree, str):
            return self.in_text(tree)
        if isinstance(tree, dict):
            hidden = {}
            for key, value in tree.items():
                hidden[self.in_text(key)] = self.in_tree(value)
            return hidden
        if isinstance(tree, list):
            return [self.in_tree(one) for one in tree]
        return tree


def _last_part(found: re.Match[str]) -> str:
    parts = re.split(r"[/\\]+", found[0].rstrip("/\\"))
    if len(parts) > 3:
        return f"~/{parts[-1]}"
    return "~"
