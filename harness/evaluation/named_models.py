"""The one grammar by which models are named that our encoder does not open.

| name | model |
|---|---|
| hub id, folder, `embedded:NAME` | none of these: opened by `harness.encoder` |
| `FILE.parquet`, `FILE.npz` | `harness.evaluation.outside_models.FileVectors` |
| `module:function` | `harness.evaluation.outside_models.ModuleFunction` |
| `http(s)://HOST/v1#NAME` | `harness.evaluation.endpoints.Endpoint` |
| `mteb:NAME` | `harness.evaluation.mteb_models.MtebModel` |
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from harness.errors import InputError
from harness.evaluation.endpoints import Endpoint
from harness.evaluation.mteb_models import MtebModel
from harness.evaluation.outside_models import FileVectors, ModuleFunction, OutsideModel
from harness.files.model_names import ENDPOINTS, MTEB, is_file, is_function
from harness.files.reading import expand_user, require_ordinary


def open_outside(
    name: str,
    *,
    version: str = "",
    trust_remote_code: bool = False,
) -> OutsideModel | None:
    """Return the outside model of that name; None for other names. Nothing is sent yet.

    Args:
        version: what the user states of an endpoint: its vectors are stored under it.
        trust_remote_code: a loader of mteb may run the code of a repository.

    Raises:
        InputError: the file or the function cannot be read, or is of another kind; no such model of
            mteb.
    """
    if trust_remote_code and not name.startswith(MTEB):
        raise InputError(
            f'"{name}" runs no code of a repository, or may not; models of mteb ({MTEB}NAME) may',
            key="trust_remote_code",
            remedy="leave it out",
        )
    if name.startswith(ENDPOINTS):
        return Endpoint(name, version)
    if is_file(name):
        return _open_file(expand_user(name))
    if name.startswith(MTEB):
        return MtebModel(name.removeprefix(MTEB), trust_remote_code=trust_remote_code)
    if is_function(name):
        return ModuleFunction(name)
    return None


def _open_file(file: Path) -> FileVectors:
    """Return the vectors of a file, read once as long as it does not change.

    Raises:
        InputError: as `FileVectors`.
    """
    require_ordinary(file)
    state = file.stat()
    return _read_once(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _read_once(file: Path, changed: int, size: int) -> FileVectors:
    return FileVectors(file)
