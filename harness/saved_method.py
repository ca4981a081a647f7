"""The settings file in the folder of a saved method: which method it is, its configuration, hashes
of its weights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.config import Config
from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.files.hashing import sha256_of
from harness.files.reading import read_json
from harness.seeds import seed_of

METHOD_FILE = "harness_method.json"


def write_settings(
    folder: Path,
    *,
    method: str,
    base_model: str,
    config: Config,
    **more: Any,
) -> None:
    """Write METHOD_FILE into a folder that holds the weights of a method; `more` are further keys.

    >>> whitening = harness.train("whitening", corpus=["A dog runs.", "It rains."], dev=None, out=work / "again")
    >>> write_settings(work / "again", method="whitening", base_model="embedded:mini-bert", config=whitening.config)
    >>> sorted(read_saved_settings(work / "again"))
    ['base_model', 'config', 'method', 'weights']
    """
    about = {
        "method": method,
        "base_model": base_model,
        "config": config.model_dump(),
        **more,
    }
    files = sorted(
        file for pattern in ("*.safetensors", "tokenizer.json") for file in folder.rglob(pattern)
    )
    weights = {file.relative_to(folder).as_posix(): sha256_of(file) for file in files}
    write_atomic(folder / METHOD_FILE, json.dumps({**about, "weights": weights}, indent=1) + "\n")


def read_saved_settings(path: str | Path) -> dict[str, Any]:
    """What METHOD_FILE in a folder says: "method", "base_model", "config", "weights", and what a
    method adds ("seed").

        >>> sorted(read_saved_settings(work / "white"))
        ['base_model', 'config', 'method', 'weights']

    Raises:
        InputError: it cannot be read, or lacks one of the first three.
    """
    file = Path(path) / METHOD_FILE
    about = {"weights": {}, **read_json(file)}  # a plugin that writes the file itself may name none
    expected = {
        "method": (str, "a text"),
        "base_model": (str, "a text"),
        "config": (dict, "a table"),
        "weights": (dict, "a table"),
    }
    for key, (kind, what) in expected.items():
        if not isinstance(about.get(key), kind):
            raise InputError(
                f'damaged: key "{key}": expected {what}',
                file=file,
                key=key,
                remedy="save the method again",
            )
    return about


def check_weights(path: str | Path) -> dict[str, Any]:
    """What `read_saved_settings` returns, of a folder that holds the weights that were saved with it.

        >>> check_weights(work / "white")["method"]
        'whitening'

    Raises:
        InputError: as `read_saved_settings`; a file of weights is missing, or is another one.
    """
    about = read_saved_settings(path)
    for name, digest in about["weights"].items():
        weights = Path(path) / name
        if not weights.is_file() or sha256_of(weights) != digest:
            raise InputError(
                f"not the weights that were saved with {METHOD_FILE}",
                file=weights,
                remedy="save the method again",
            )
    return about


def read_saved_seed(path: str | Path) -> int:
    """The seed that a saved method was made with.

        >>> method = harness.train("random", seed=7, dev=None, out=work / "random")
        >>> read_saved_seed(work / "random")
        7

    Raises:
        InputError: METHOD_FILE cannot be read, or names none.
    """
    try:
        return seed_of(read_saved_settings(path))
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f'{Path(path) / METHOD_FILE}: damaged: key "seed": expected a whole number', key="seed"
        ) from None
