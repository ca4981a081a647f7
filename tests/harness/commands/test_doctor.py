"""`harness doctor` on a machine where not all is well."""

from __future__ import annotations

import json

import pytest

from harness.cli import main
from harness.commands import doctor
from harness.commands.list import Plugin


def test_devices_have_a_precision(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "find_plugins", list)
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert any(precision in report["cpu"] for precision in ("fp32", "bf16"))
    assert main(["doctor"]) == 0
    assert report["python"] in capsys.readouterr().out


def test_a_plugin_that_cannot_be_imported_is_named_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Plugin(
        "harness.methods",
        "broken",
        "theirs",
        "1.0",
        "theirs:Broken",
        'method "broken" cannot be imported',
    )
    monkeypatch.setattr(doctor, "find_plugins", lambda: [broken])
    assert main(["doctor"]) == 1
    assert 'method "broken" cannot be imported' in " ".join(capsys.readouterr().out.split())
