"""`harness doctor` on a machine where not all is well."""

from __future__ import annotations

import json
import socket

import pytest

from harness.commands import doctor
from harness.commands.plugins import Plugin


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
    assert doctor.run(json=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["hub"]["reachable"] is False
    assert "refused" in report["hub"]["reason"]
    assert report["devices"][0]["device"] == "cpu"
    assert report["devices"][0]["precision"]["choice"] in ("fp32", "bf16")
    assert doctor.run() == 0
    assert "not reachable" in capsys.readouterr().out


def test_a_plugin_that_cannot_be_imported_is_named_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Plugin("harness.methods", "broken", "theirs", "1.0", "theirs:Broken", 'method "broken" cannot be imported')
    monkeypatch.setattr(doctor, "installed", lambda: [broken])
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert doctor.run() == 1
    assert 'method "broken" cannot be imported' in " ".join(capsys.readouterr().out.split())


def test_cache_size_counts_a_file_once_however_many_links_lead_to_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("cache")
    (folder / "blobs").mkdir()
    (folder / "blobs" / "a").write_bytes(b"x" * 1000)
    (folder / "snapshot").symlink_to(folder / "blobs")
    (folder / "link").symlink_to(folder / "blobs" / "a")
    assert doctor._size(folder) == 1000
    assert doctor._size(folder / "absent") == 0
