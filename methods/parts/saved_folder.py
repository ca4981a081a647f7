"""Folders of methods that are no single encoder: written in whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.encoder.layout import card_text, make_sentence_transformer, staged_folder
from harness.errors import InputError
from harness.method import Method
from harness.saved_method import METHOD_FILE, write_settings


@contextmanager
def new_folder(method: Method, path: str | Path, card: str = "", **more: Any) -> Iterator[Path]:
    """A folder to write into; it takes the place of `path` when the block ends well, and vanishes when it does not.

    README.md and the file that says how the method was configured, and `more`, are added; so is modules.json where the
    block wrote none, so that sentence-transformers opens the folder. An earlier saved method is replaced.

    Raises:
        InputError: `path` holds something that is not a saved method.
    """
    path = Path(path)
    if path.exists() and not (path.is_dir() and ((path / METHOD_FILE).exists() or not any(path.iterdir()))):
        raise InputError(f"{path} exists and is not a saved method; choose another folder or remove it")
    with staged_folder(path) as staged:
        yield staged
        write_settings(staged, method=method.name, base_model=method.base_model, config=method.config, **more)
        text = card_text(card.strip() or f"# {method.card.title}", ours=make_sentence_transformer(staged))
        (staged / "README.md").write_text(text, "utf-8")
