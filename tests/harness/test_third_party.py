"""A method, a task and a suite of another package: installed by pip, they are listed and compared like ours."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "tests" / "third_party"
EXPERIMENT = """
name = "theirs"
seeds = [1]
suites = ["Embedded-STS-natural", "order"]
max_steps = 2
precision = "fp32"
[corpus]
uri = "embedded:sentences"
limit = 32
[dev]
task = "Embedded-STS-natural"
[[methods]]
method = "align_uniform"
config = { batch_size = 8, train_length = 12, uniformity = 0.5 }
"""
# One process for all: importing torch takes longer than the rest.
COMMANDS = """
import sys
from harness.cli import main
codes = [main(command) for command in (
    ["list", "methods"],
    ["list", "tasks"],
    ["list", "suites"],
    ["list", "plugins"],
    ["check-method", "align_uniform", "--json"],
    ["compare", "theirs.toml", "--workdir", "work", "--no-tracking", "--format", "md", "--quiet"],
)]
sys.exit(max(codes))
"""

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package installed by pip into a folder of its own, without touching this environment."""
    folder = tmp_path_factory.mktemp("third-party")
    source = shutil.copytree(PACKAGE, folder / "source")  # a build leaves files beside the sources
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
               "--no-deps", "--no-build-isolation", "--target", str(folder / "site"), str(source)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder / "site"


def test_a_method_of_another_package_is_one_like_ours(site: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs.toml").write_text(EXPERIMENT)
    path = os.pathsep.join([str(site), str(REPOSITORY)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    listed, brace, rest = done.stdout.partition("{")
    checked, end = json.JSONDecoder().raw_decode(brace + rest)
    assert "align_uniform" in listed
    assert "simcse" in listed
    assert checked["passed"], [check for check in checked["checks"] if not check["passed"]]
    assert "align_uniform" in (brace + rest)[end:], "a row of the table"
    (record,) = (json.loads(file.read_text()) for file in (tmp_path / "work" / "runs").glob("*/record.json"))
    assert record["status"] == "finished"
    assert record["method"] == "align_uniform"
    for line in (
        r"word-order +order \[align-uniform 1\.0\]",
        r"order +sentences and their words shuffled, told apart \[align-uniform 1\.0\]",
        r"harness\.tasks word-order \(align-uniform 1\.0\) +word_order:WordOrder",
        r"harness\.suites order \(align-uniform 1\.0\) +word_order:SUITE",
    ):
        assert re.search(f"^{line}$", listed, re.MULTILINE), line
    assert "UNUSABLE" not in listed
    (score,) = (score for score in record["scores"] if score["suite"] == "order")
    assert (score["task"], score["metric"], score["n"]) == ("word-order", "accuracy", 300)
    assert 0 <= score["value"] <= 1
    assert record["protocols"][score["protocol"]]["classifier"] == "logistic regression, C = 1"


def test_the_readme_quotes_this_package() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert f"```python\n{(PACKAGE / 'align_uniform.py').read_text(encoding='utf-8')}```\n" in readme
    points = '[project.entry-points."harness.methods"]\nalign_uniform = "align_uniform:AlignUniform"\n'
    assert points in (PACKAGE / "pyproject.toml").read_text(encoding="utf-8")
    assert points in readme
