"""Content hashes of code and models: a run is recomputed when, and only when, something that it uses has changed."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from functools import cache
from pathlib import Path

from harness.errors import InputError
from harness.files.hashing import content_id
from harness.sources import resolve_model

WEIGHTS_AND_SETTINGS = {".safetensors", ".json", ".txt", ".model", ".bin"}


def _imports(file: Path, packages: set[str]) -> set[str]:
    """Modules of `packages` that a file imports, wherever in it the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if name.split(".")[0] in packages}


@cache
def code_version(module: str) -> str:
    """Hash of the source of `module` and of all it imports from its own package and from the harness.

    Comments and layout do not count: the parsed code is what is hashed.
    """
    packages = {module.split(".")[0], "harness"}
    waiting, files = [module], {}
    while waiting:
        name = waiting.pop()
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):
            spec = None  # a function or class, not a module
        if spec is None or not spec.origin or not spec.origin.endswith(".py") or name in files:
            continue
        files[name] = ast.dump(ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
        waiting.extend(_imports(Path(spec.origin), packages))
    return content_id(sorted(files.items()))


@cache
def model_fingerprint(name: str) -> str:
    """Content hash of a model folder, or the commit of a model on the hub.

    Raises:
        InputError: there is no such model.
    """
    where = resolve_model(name)
    folder = Path(where)
    if folder.is_dir():
        digest = hashlib.sha256()
        for file in sorted(f for f in folder.rglob("*") if f.suffix in WEIGHTS_AND_SETTINGS and f.is_file()):
            digest.update(str(file.relative_to(folder)).encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()[:16]
    from transformers import AutoConfig

    try:
        commit = AutoConfig.from_pretrained(where)._commit_hash
    except (OSError, ValueError) as error:
        raise InputError(
            f'base model "{name}": not a folder here and not found on the hub ({str(error).splitlines()[0]})'
        ) from None
    return str(commit)
