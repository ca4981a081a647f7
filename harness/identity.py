"""What a base model is, by content: a run that starts from other weights is another run."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from harness.errors import InputError
from harness.sources import resolve_model
from harness.sources.remote.hub import hub_file

_SUFFIXES = {".safetensors", ".json", ".txt", ".model", ".bin"}  # of weights and settings


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
        for file in sorted(f for f in folder.rglob("*") if f.suffix in _SUFFIXES and f.is_file()):
            digest.update(str(file.relative_to(folder)).encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()[:16]
    try:
        return hub_file(where, "config.json", kind="model").parent.name  # of its snapshot: the commit
    except InputError as error:
        raise type(error)(f'base model "{name}": not a folder here and not found on the hub ({error})') from None
