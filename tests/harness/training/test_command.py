"""Training scripts of others as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harness
from harness import registry
from harness.errors import RunError
from harness.method import FitContext
from harness.sources import resolve_model
from tests.support.errors import raises_input_error

SCRIPT = """
import argparse
import torch
from torch.nn.functional import cross_entropy, normalize
from transformers import AutoModel, AutoTokenizer

p = argparse.ArgumentParser()
for name in ("model_name_or_path", "train_file", "output_dir"):
    p.add_argument("--" + name)
p.add_argument("--seed", type=int)
args = p.parse_args()
torch.manual_seed(args.seed)
tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
model = AutoModel.from_pretrained(args.model_name_or_path).train()
head = torch.nn.Linear(model.config.hidden_size, 64)  # float32, as every new module
adam = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-3)
lines = open(args.train_file, encoding="utf-8").read().splitlines()
for step in range(2):
    batch = tokenizer(lines[:8], padding=True, truncation=True, max_length=32, return_tensors="pt")
    a, b = (normalize(head(model(**batch).last_hidden_state[:, 0]), dim=1) for _ in range(2))
    loss = cross_entropy(a @ b.T / 0.05, torch.arange(len(a)))
    adam.zero_grad()
    loss.backward()
    adam.step()
    print("step", step, "loss", float(loss))
model.save_pretrained(args.output_dir)
tokenizer.save_pretrained(args.output_dir)
"""
RUN = (
    "python train.py --model_name_or_path {base_model} --train_file {text} --seed {seed} "
    "--output_dir {out}"
)
# Writes the base model, moved by an amount that seed and text decide: it imports no torch.
MOVING = """
import argparse
import shutil
import zlib
from pathlib import Path
from safetensors.numpy import load_file, save_file

p = argparse.ArgumentParser()
for name in ("model_name_or_path", "train_file", "output_dir"):
    p.add_argument("--" + name, type=Path)
p.add_argument("--seed", type=int)
args = p.parse_args()
shutil.copytree(args.model_name_or_path, args.output_dir, dirs_exist_ok=True)
file = args.output_dir / "model.safetensors"
weights = load_file(file)
moved = 1 + args.seed / 10 + zlib.crc32(args.train_file.read_bytes()) / 2**40
first = next(name for name, value in weights.items() if value.ndim == 2)
assert weights[first].dtype == "float32"  # the model that ships is stored in half precision
weights[first] = weights[first] * moved
print("step 1 loss", moved)
save_file(weights, file, {"format": "pt"})
"""
TEXTS = [f"The dog number {i} sleeps." for i in range(12)]


def row(folder: Path, run: str = RUN, **config: Any) -> dict[str, Any]:
    return {"run": run, "folder": str(folder), "pooling": "cls", **config}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "the script"  # a blank in a path is no border of words
    place.mkdir()
    (place / "train.py").write_text(SCRIPT)
    return place


def fit(
    folder: Path, run: str = RUN, seed: int = 1, texts: list[str] = TEXTS, **config: Any
) -> Any:
    kind = registry.load(registry.METHODS, "command")
    method = kind(kind.configure(row(folder, run, **config)))
    return method.fit(texts, FitContext(seed=seed, device="cpu"))


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize(
    "script", [MOVING, pytest.param(SCRIPT, marks=pytest.mark.campaign)], ids=["moving", "simcse"]
)
def test_a_script_is_a_row_beside_ours(folder: Path, tmp_path: Path, script: str) -> None:
    """One that moves the weights, and as a campaign one of SimCSE that imports what takes seconds."""
    (folder / "train.py").write_text(script)
    rows = [
        {"name": "authors", "method": "command", "config": row(folder)},
        {"method": "simcse", "config": {"batch_size": 8}},
    ]
    found = harness.compare(
        {"name": "scripts", "methods": rows},
        seeds=[1],
        max_steps=2,
        suites="Embedded-STS-natural",
        workdir=tmp_path / "work",
        tracking_uri="none",
        formats=["md"],
    )
    records = {record.row: record for record in found.records}
    assert records["authors"].status == "finished", records["authors"].reason
    assert records["authors"].training["loop"] == "own"
    log = tmp_path / "work" / "runs" / records["authors"].id / "command.log"
    assert "step 1 loss" in log.read_text()
    report = next((tmp_path / "work" / "reports").rglob("*.md")).read_text()
    assert "own loop" in report


def test_seed_and_text_reach_the_script(folder: Path) -> None:
    (folder / "train.py").write_text(MOVING)
    first = fit(folder).encode(TEXTS[:2])
    assert abs(first).max() < 100
    assert (fit(folder).encode(TEXTS[:2]) == first).all()
    assert (fit(folder, seed=2).encode(TEXTS[:2]) != first).any()
    assert (fit(folder, texts=[*TEXTS, "more"]).encode(TEXTS[:2]) != first).any()


def test_a_changed_script_is_another_run(folder: Path) -> None:
    kind = registry.load(registry.METHODS, "command")
    method = kind(kind.configure(row(folder)))
    before = method.inputs
    (folder / "train.py").write_text(SCRIPT + "\n# changed\n")
    assert method.inputs != before


@pytest.mark.parametrize(
    ("script", "hours", "said"),
    [
        ("print('before'); raise SystemExit('no GPU here')", 1.0, "no GPU here"),
        ("import time; print('waiting', flush=True); time.sleep(600)", 0.0006, "waiting"),
        ("print('trained nothing')", 1.0, "trained nothing"),
        ("def half(x):\n    return 1 + x / 'two' + 3\nhalf(4)", 1.0, "TypeError"),
    ],
)
def test_a_failing_hanging_or_empty_run_says_its_last_lines(
    folder: Path, script: str, hours: float, said: str
) -> None:
    (folder / "train.py").write_text(script)
    with pytest.raises(RunError) as error:
        fit(folder, hours=hours)
    (line,) = str(error.value).splitlines()
    assert said in line
    assert "^^" not in line  # marks below the code of a traceback


def test_no_shell_reads_the_command(folder: Path) -> None:
    (folder / "train.py").write_text("import sys; raise SystemExit(repr(sys.argv[1:]))")
    with pytest.raises(RunError) as error:
        fit(folder, "python train.py '$(touch here); `ls`' ; {out}")
    assert "$(touch here); `ls`" in str(error.value)
    assert not (folder / "here").exists()


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"run": "python train.py {seed.__class__}{out} {lr}"}, "run"),
        ({"run": "python train.py"}, "run"),
        ({"run": "python 'train.py {out}"}, "run"),
        ({"run": ""}, "run"),
        ({"run": "no-such-program {out}"}, "run"),
        ({"run": RUN, "python": "no/such/python"}, "python"),
        ({"run": RUN, "files": ["*.none"]}, "files"),
        ({"run": RUN, "folder": "no/such/folder"}, "folder"),
    ],
)
def test_a_command_that_cannot_run_is_one_line(folder: Path, values: Any, key: str) -> None:
    kind = registry.load(registry.METHODS, "command")
    with raises_input_error(key=key):
        kind(kind.configure({**row(folder), **values})).fit(TEXTS)


def test_the_base_model_is_a_folder_that_scripts_can_open() -> None:
    assert (Path(resolve_model("embedded:mini-bert")) / "config.json").is_file()
