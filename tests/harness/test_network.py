"""No command asks the network for what is on this disk: no address is looked up, no connection
opened.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import own_files
from tests.support.bases import narrow_bert

EXPERIMENT = """
name = "small"
seeds = [1]
suites = ["pairs.csv"]
precision = "fp32"
max_steps = 1
corpus = { uri = "embedded:sentences", limit = 16 }
dev = { task = "Embedded-STS-natural", pairs = 20 }
methods = [
  { method = "pooling" },
  { method = "simcse", preset = "mini", config = { batch_size = 8 } },
]
"""
WATCH = """
import sys

def watch(event, arguments):
    name = event.removeprefix("socket.")
    if name in ("getaddrinfo", "gethostbyname") and arguments[0] not in (None, "localhost"):
        seen.append((event, str(arguments[0])))
    if name == "connect" and not isinstance(arguments[1], (str, bytes)):  # no socket of a file
        seen.append((event, str(arguments[1])))

seen = []
sys.addaudithook(watch)
from harness.cli import main

for command in sys.argv[1].split("|"):
    before = len(seen)
    code = main(command.split())
    assert code == 0, (command, code)
    assert len(seen) == before, (command, seen[before:])
    if command.startswith("compare"):  # neither needs what takes seconds to import
        assert not {"mteb", "sentence_transformers"} & set(sys.modules), command
"""
COMMANDS = (
    "compare small.toml --workdir w --quiet --format csv",
    "compare small.toml --workdir w --dry-run",
    "status --workdir w",
    "verdict --workdir w",
    "report build small --workdir w --format md",
    "doctor --workdir w",
    "track sync --workdir w",
    "evaluate embedded:mini-bert --suite pairs.csv",
    "list data",
    "list studies",
)


@pytest.mark.timeout(600)  # ten commands, which a busy machine runs in some minutes
def test_what_is_on_this_disk_is_not_asked_for(tmp_path: Path) -> None:
    text = f"base_models = [{narrow_bert()!r}]\n{EXPERIMENT}"
    (tmp_path / "small.toml").write_text(text)
    own_files.pairs_file(tmp_path / "pairs.csv", 20)
    unset = ("HF_HUB_OFFLINE", "HF_ENDPOINT", "MLFLOW_TRACKING_URI")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment["HARNESS_CACHE"] = str(tmp_path / "cache")
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", WATCH, "|".join(COMMANDS)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
