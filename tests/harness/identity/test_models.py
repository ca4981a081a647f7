"""What a model is, by content."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import InputError
from harness.identity import models


def test_a_model_of_the_hub_is_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"

    def cached(repo: str, file: str, *, kind: str) -> Path:
        if repo != "organisation/model":
            raise InputError("the hub has no such model")
        return tmp_path / "models--organisation--model" / "snapshots" / commit / file

    monkeypatch.setattr(models, "hub_file", cached)
    assert models.model_fingerprint("organisation/model") == commit
    with pytest.raises(InputError, match=r'base model "organisation/none": .*the hub has no such model'):
        models.model_fingerprint("organisation/none")
