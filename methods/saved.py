"""Folders of methods that are no single encoder: written in whole or not at all, and read back."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import InputError
from harness.method import METHOD_FILE, Method

M = TypeVar("M", bound=Method)


@contextmanager
def new_folder(method: Method, path: str | Path, card: str = "", **more: Any) -> Iterator[Path]:
    """A folder to write into; it takes the place of `path` when the block ends well, and vanishes when it does not.

    README.md and the file that says how the method was configured, and `more`, are added. An earlier saved method is
    replaced.

    Raises:
        InputError: `path` holds something that is not a saved method.
    """
    path = Path(path)
    if path.exists() and not (path.is_dir() and ((path / METHOD_FILE).exists() or not any(path.iterdir()))):
        raise InputError(f"{path} exists and is not a saved method; choose another folder or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        staged.chmod(0o755)
        yield staged
        about = {"method": method.name, "base_model": method.base_model, "config": method.config.model_dump()}
        about |= more
        (staged / METHOD_FILE).write_text(json.dumps(about, indent=1) + "\n", "utf-8")
        (staged / "README.md").write_text(card or f"# {method.card.title}\n", "utf-8")
        if path.exists():
            shutil.rmtree(path)
        staged.rename(path)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def unfitted(kind: type[M], path: str | Path) -> M:
    """The method that was saved in `path`, configured as it was, without what it had learnt.

    Raises:
        InputError: the folder is not one of a saved method, or another method's.
    """
    file = Path(path) / METHOD_FILE
    if not file.is_file():
        raise InputError(f"{path}: no {METHOD_FILE} in it; expected a folder written by Method.save")
    about = json.loads(file.read_text("utf-8"))
    if about["method"] != kind.name:
        raise InputError(f'{path}: holds a "{about["method"]}", not a "{kind.name}"')
    return kind(kind.Config.parse(about["config"], str(file)), base_model=about["base_model"])
