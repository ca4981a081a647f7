"""Folders of saved methods that no module of sentence-transformers can express: modules.json names a module of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MODULES = "modules.json"
TYPE = "harness.modules.SavedMethod"  # folders name it: this path stays whatever moves


def make_sentence_transformer(folder: Path) -> bool:
    """Name our module in the folder of a saved method; False where it is a SentenceTransformer already."""
    if (folder / MODULES).exists():
        return False
    settings: dict[str, Any] = {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    _write(folder / "config_sentence_transformers.json", settings)
    _write(folder / MODULES, [{"idx": 0, "name": "0", "path": "", "type": TYPE}])
    return True


def is_whole_method(folder: Path) -> bool:
    """Can only its own method read the folder? Earlier versions wrote such folders without modules.json."""
    file = folder / MODULES
    if not file.is_file():
        return True
    try:
        return names_us(json.loads(file.read_text("utf-8")))
    except ValueError:  # told by whoever reads it
        return False


def names_us(modules: Any) -> bool:
    """Is the module that the content of modules.json names ours?"""
    return isinstance(modules, list) and [m.get("type") for m in modules if isinstance(m, dict)] == [TYPE]


def names_our_modules(folder: Path) -> bool:
    """Does modules.json name a class of ours, so that sentence-transformers asks for `trust_remote_code`?"""
    return any(str(m["type"]).startswith("harness.modules.") for m in json.loads((folder / MODULES).read_text("utf-8")))


def _write(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
