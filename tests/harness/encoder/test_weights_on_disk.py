"""Weights on disk: pickles are refused before they are opened, and what is written honours the umask."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch

from harness import registry
from harness.encoder import Encoder
from harness.encoder.foreign import open_model
from harness.errors import InputError
from harness.sources import resolve_model

BASE = "embedded:mini-bert"


@pytest.fixture
def pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model whose weights are a pickle alone; opening it fails the test."""
    folder = tmp_path / "pickled"
    shutil.copytree(resolve_model(BASE), folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"not to be opened")

    def opened(*args: object, **options: object) -> None:
        raise AssertionError("torch.load was called")

    monkeypatch.setattr(torch, "load", opened)
    return folder


def test_a_folder_with_a_pickle_alone_is_refused_with_the_way_to_convert_it(pickled: Path) -> None:
    for load in (Encoder.from_pretrained, Encoder.load, open_model):
        with pytest.raises(InputError, match=r"pytorch_model\.bin.*save_pretrained"):
            load(str(pickled))


def test_a_pickle_beside_safe_weights_is_not_looked_at(tmp_path: Path, pickled: Path) -> None:
    shutil.copy(Path(resolve_model(BASE), "model.safetensors"), pickled)
    assert Encoder.from_pretrained(str(pickled)).encode("A sentence.").ndim == 1


def test_a_pickle_in_a_module_of_another_library_is_refused(pickled: Path, tmp_path: Path) -> None:
    shutil.copy(Path(resolve_model(BASE), "model.safetensors"), pickled)
    (pickled / "pytorch_model.bin").rename((pickled / "1_Odd").mkdir() or pickled / "1_Odd" / "pytorch_model.bin")
    (pickled / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "1_Odd", "type": "x.Odd"}]')
    with pytest.raises(InputError, match="pickle alone"):
        open_model(str(pickled))


RIGHTS = [(0o027, 0o750, 0o640), (0o077, 0o700, 0o600), (0o002, 0o775, 0o664)]


@pytest.mark.parametrize(("umask", "folder", "file"), RIGHTS)
def test_saved_models_honour_the_umask(umask: int, folder: int, file: int, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("a 0.1 0.2\nb 0.3 0.4\n")
    before = os.umask(umask)
    try:
        Encoder.from_pretrained(BASE).save(tmp_path / "made" / "encoder")
        static = registry.load(registry.METHODS, "static")
        static(static.Config(vectors=str(vectors)), base_model=BASE).fit().save(tmp_path / "made" / "method")
    finally:
        os.umask(before)
    for path in (tmp_path / "made").rglob("*"):
        assert path.stat().st_mode & 0o777 == (folder if path.is_dir() else file), path
