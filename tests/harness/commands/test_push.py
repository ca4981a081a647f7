"""`harness push` against a hub of a few lines: what arrives is the model and its card, and nothing else."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main

MODEL = ("1_Pooling/config.json", "README.md", "config.json", "harness_method.json", "model.safetensors",
         "modules.json", "tokenizer.json", "vocab.txt")  # fmt: skip
OTHER = ("checkpoint/state.safetensors", "corpus.txt", "curves.jsonl", "pairs.parquet", "weights.bin", ".lock.json")


class Hub(BaseHTTPRequestHandler):
    """Takes repositories and commits of a token that it knows."""

    made: dict[str, Any]
    files: dict[str, bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != "Bearer hf_known":
            return self._answer(401, {"error": "Invalid credentials"})
        if self.path == "/api/repos/create":
            self.made |= json.loads(body)
            return self._answer(200, {"url": f"http://{self.headers['Host']}/org/name", "name": "org/name"})
        if self.path == "/api/models/org/name/preupload/main":
            asked = json.loads(body)["files"]
            return self._answer(200, {"files": [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in asked]})  # fmt: skip
        if self.path.startswith("/api/models/org/name/commit/main"):
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            return self._answer(
                200, {"commitUrl": f"http://{self.headers['Host']}/org/name/commit/{'1' * 40}", "commitOid": "1" * 40}
            )
        return self._answer(200, {"isValid": True, "message": "", "errors": [], "warnings": []})

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == "Bearer hf_known"
        self._answer(200 if known else 401, {"id": "org/name", "sha": "0" * 40, "siblings": []})

    def _answer(self, code: int, tree: Any) -> None:
        text = json.dumps(tree).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    kind = type("OneHub", (Hub,), {"made": {}, "files": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_TOKEN", "hf_known")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    yield kind
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work directory with one run, whose folder of the model holds more than a model."""
    for name in (*MODEL, *OTHER):
        file = tmp_path / "work" / "runs" / "simcse-1" / "model" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("---\nlicense: apache-2.0\n---\n# A model\n" if name == "README.md" else "{}")
    return tmp_path / "work"


def test_a_dry_run_sends_nothing(hub: type[Hub], work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push", "simcse-1", "org/name", "--workdir", str(work), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert tuple(line.split()[-1] for line in lines[:-1]) == MODEL
    assert lines[-1] == "would be uploaded to org/name (private); nothing was sent"
    assert (hub.made, hub.files) == ({}, {})


@pytest.mark.parametrize("by", ["id", "run", "model"])
def test_the_model_arrives_with_its_card_and_nothing_else(
    hub: type[Hub], work: Path, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = work / "runs" / "simcse-1"
    named = {"id": "simcse-1", "run": str(run), "model": str(run / "model")}[by]
    assert main(["push", named, "org/name", "--workdir", str(work), *(["--public"] if by == "run" else [])]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("/org/name")
    assert tuple(sorted(hub.files)) == MODEL
    assert hub.files["README.md"] == (run / "model" / "README.md").read_bytes()
    assert hub.made["visibility"] == ("public" if by == "run" else "private")


def test_what_cannot_be_is_one_line(
    hub: type[Hub], work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*argv: str) -> str:
        code = main(["push", *argv, "--workdir", str(work)])
        (line,) = capsys.readouterr().err.splitlines()
        assert code in (1, 2)
        return line

    assert "no saved model there; name a run of" in refused("simcse-2", "org/name")
    assert "no saved model there" in refused("../..", "org/name")
    assert "expected ORG/NAME" in refused("simcse-1", "name")
    monkeypatch.setenv("HF_TOKEN", "hf_stranger")
    assert "the hub refuses" in refused("simcse-1", "org/name")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert "nothing was changed here" in refused("simcse-1", "org/name")
    assert hub.files == {}
