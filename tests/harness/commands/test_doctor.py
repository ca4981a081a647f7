"""`harness doctor` on a machine where not all is well."""

from __future__ import annotations

import json
import socket

import pytest

from harness.cli import main
from harness.commands import doctor
from harness.commands.list import Plugin


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_an_unreachable_hub_is_reported_and_no_failure(
    closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setattr(doctor, "installed", list)
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "not reachable" in report["hub"]
    assert "refused" in report["hub"]
    assert any(precision in report["cpu"] for precision in ("fp32", "bf16"))
    assert main(["doctor"]) == 0
    assert "not reachable" in capsys.readouterr().out


def test_a_plugin_that_cannot_be_imported_is_named_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Plugin("harness.methods", "broken", "theirs", "1.0", "theirs:Broken", 'method "broken" cannot be imported')
    monkeypatch.setattr(doctor, "installed", lambda: [broken])
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert main(["doctor"]) == 1
    assert 'method "broken" cannot be imported' in " ".join(capsys.readouterr().out.split())
