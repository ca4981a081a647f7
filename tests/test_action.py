"""The action for other repositories: its shell steps are run as they are written, with the values
that GitHub would give them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

REPOSITORY = Path(__file__).parents[1]
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
OLD = [79.9, 80.3, 80.1, 80.0, 80.2]
BETTER = [84.9, 85.2, 85.1, 85.3, 85.0]
EQUAL = [80.0, 80.1, 79.9, 80.3, 80.1]
WORSE = [75.0, 75.2, 75.1, 74.9, 75.1]
Run = Callable[..., tuple[str, int, Path]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the steps that need no service with these inputs; returns the decision, the exit code of
    the last step, and the folder of the runner.
    """
    runner = tmp_path / "runner"
    programs = tmp_path / "programs"
    for folder in (runner, programs):
        folder.mkdir()
    for name, module in (("harness", "-m harness"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        program.chmod(0o755)

    def run_steps(**inputs: str) -> tuple[str, int, Path]:
        values = {name: about["default"] for name, about in ACTION["inputs"].items()}
        values |= {name.replace("_", "-"): value for name, value in inputs.items()}
        output = runner / "output"
        output.write_text("")
        decision = ""
        for name in ("Score", "Decide", "Pass or fail"):
            (step,) = (step for step in STEPS if step.get("name") == name)
            if name == "Score" and values["scores"]:
                continue
            environment = {
                **os.environ,
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(REPOSITORY),
                "RUNNER_TEMP": str(runner),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(runner / "summary.md"),
                "OMP_NUM_THREADS": "1",
            }
            for variable, text in step["env"].items():
                environment[variable] = _fill(text, values, decision)
            shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            if name == "Score" and done.returncode:
                return done.stderr, done.returncode, runner
            found = re.findall(r"^decision=(\w+)$", output.read_text(), re.MULTILINE)
            decision = found[-1] if found else ""
        return decision, done.returncode, runner

    return run_steps


def _fill(text: str, values: dict[str, str], decision: str) -> str:
    """The value of an expression of GitHub that is an input or the decision."""
    found = re.fullmatch(r"\$\{\{ (inputs|steps\.decide\.outputs)\.([\w-]+) \}\}", text)
    assert found is not None, text
    return values[found[2]] if found[1] == "inputs" else decision


def scores(file: Path, **rows: list[float]) -> str:
    lines = ["row,seed,score"]
    for row, runs in rows.items():
        lines += [f"{row},{seed},{value}" for seed, value in enumerate(runs)]
    file.write_text("\n".join(lines) + "\n")
    return file.name


@pytest.mark.parametrize(
    ("new", "options", "decision", "code"),
    [
        (BETTER, {}, "keep", 0),
        (WORSE, {"not_worse_by": "0.3"}, "drop", 1),
        (EQUAL, {"not_worse_by": "1", "most": "5"}, "keep", 0),
        (BETTER[:3], {}, "undecided", 1),
        (BETTER[:3], {"undecided": "pass"}, "undecided", 0),
    ],
)
def test_the_decision_is_that_of_the_gate(
    run: Run, tmp_path: Path, new: list[float], options: dict[str, str], decision: str, code: int
) -> None:
    file = scores(tmp_path / "scores.csv", baseline=OLD, candidate=new)
    found, exit_code, runner = run(scores=file, **options)
    assert (found, exit_code) == (decision, code)
    comment = (runner / "harness-comment.md").read_text()
    assert comment.startswith(f"**harness gate: {decision}**\n\n    ")
    assert (runner / "summary.md").read_text() == comment


def test_the_history_grows_and_several_files_are_one_table(run: Run, tmp_path: Path) -> None:
    files = scores(tmp_path / "main.csv", main=OLD) + "\n"
    files += scores(tmp_path / "change.csv", change=BETTER) + "\n"
    assert run(scores=files, baseline="main", candidate="change")[:2] == ("keep", 0)
    scores(tmp_path / "change.csv", change=WORSE)
    _, code, runner = run(scores=files, baseline="main", candidate="change")
    assert code == 1
    lines = (runner / "harness-history" / "gate.jsonl").read_text().splitlines()
    assert [json.loads(line)["decision"] for line in lines] == ["better", "not better"]


def test_a_task_that_is_missing_is_an_error(run: Run, tmp_path: Path) -> None:
    lines = ["row,seed,task,score"]
    for seed, value in enumerate(OLD):
        lines += [f"baseline,{seed},{task},{value}" for task in ("STS-B", "SICK-R")]
        lines.append(f"candidate,{seed},STS-B,{value + 5}")
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    decision, code, runner = run(scores="scores.csv")
    assert (decision, code) == ("error", 1)
    assert "SICK-R" in (runner / "harness-comment.md").read_text()


def test_names_are_no_commands_and_no_markup(run: Run, tmp_path: Path) -> None:
    name = "$(touch hacked) `touch hacked`; @everyone **b**"
    file = scores(tmp_path / "scores.csv", baseline=OLD, **{name: BETTER})
    decision, _, runner = run(scores=file, candidate=name)
    assert decision == "keep"
    assert not list(tmp_path.rglob("hacked"))
    _, _, *lines = (runner / "harness-comment.md").read_text().splitlines()
    assert all(line.startswith("    ") for line in lines)


def test_two_models_are_scored_on_a_file_of_pairs(run: Run, tmp_path: Path) -> None:
    """Pairs are at angles that the vectors of one file have in the order of the scores, and those of
    the other in no order.
    """
    count = 60
    first = [f"the first text {n}" for n in range(count)]
    second = [f"the second text {n}" for n in range(count)]
    pairs = pd.DataFrame({"sentence1": first, "sentence2": second, "score": range(count)})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    ordered = np.linspace(3, 0.1, count)
    angles = {"good": ordered, "bad": np.random.default_rng(0).permutation(ordered)}
    for name, angle in angles.items():
        vectors = [[1.0, 0.0]] * count + np.stack([np.cos(angle), np.sin(angle)], 1).tolist()
        table = pd.DataFrame({"text": first + second, "vector": vectors})
        table.to_parquet(tmp_path / f"{name}.parquet")
    models = {"baseline_model": "bad.parquet", "model": "good.parquet"}
    decision, code, runner = run(**models, suite="pairs.csv")
    assert (decision, code) == ("keep", 0)
    assert "candidate against baseline" in (runner / "harness-comment.md").read_text()
    said, code, _ = run(baseline_model="bad.parquet", suite="pairs.csv")
    assert code == 1
    assert "give scores, or baseline-model, model and suite" in said


def test_no_value_is_written_into_a_script() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", ""), "only `env` takes values"
        assert ("shell" in step) == ("run" in step)
    used = set(re.findall(r"inputs\.([\w-]+)", (REPOSITORY / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])


def test_a_model_that_cannot_be_scored_is_one_line(run: Run, tmp_path: Path) -> None:
    pairs = pd.DataFrame({"sentence1": ["a b", "c d"], "sentence2": ["a", "c"], "score": [1, 2]})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    vectors = pd.DataFrame({"text": ["another text"], "vector": [[0.1, 0.2]]})
    vectors.to_parquet(tmp_path / "vectors.parquet")
    file = "vectors.parquet"
    said, code, _ = run(baseline_model=file, model=file, suite="pairs.csv")
    assert code == 1
    assert said.splitlines()[-1].startswith("harness gate: baseline was not scored: ")
    assert "Traceback" not in said
