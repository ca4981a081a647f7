"""An experiment file of someone else runs none of its code without consent."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import InputError
from harness.runs.experiment import read_experiment

HEAD = 'suites = ["embedded"]\ndev = "Embedded-STS-natural"\n'
PLAIN = f'{HEAD}[[methods]]\nmethod = "pooling"\n'
FOREIGN = {
    "a command": '[[methods]]\nmethod = "command"\nconfig = { run = "touch {out}" }',
    "a loss": '[[methods]]\nloss = "evil:Loss"',
    "a loss as a method": '[[methods]]\nmethod = "loss:evil:Loss"',
    "a function": '[[methods]]\nmethod = "pretrained"\nconfig = { model = "evil:embed" }',
    "one in a grid": '[[methods]]\nmethod = "pretrained"\ngrid = { model = ["evil:embed"] }',
    "an endpoint": (
        '[[methods]]\nmethod = "pretrained"\nconfig = { model = "https://evil.example/v1#a" }'
    ),
    "a model": '[[methods]]\nmodel = "evil:embed"',
    "models by seed": (
        '[[methods]]\nmodel_by_seed = ["embedded:mini-bert", "evil:embed", "evil:other"]'
    ),
    "code of a repository": '[[methods]]\nmodel = "mteb:a/b"\ntrust_remote_code = true',
    "a shared function": (
        '[shared]\nmodel = "evil:embed"\n[[methods]]\nmethod = "pretrained"\n'
        '[[methods]]\nmethod = "simcse"'
    ),
    "a cluster": '[executor]\nname = "slurm"\n[[methods]]\nmethod = "pooling"',
    "options of sbatch": '[executor]\nslurm = { chdir = "x" }\n[[methods]]\nmethod = "pooling"',
    "an address": '[executor]\naddress = "ray://evil:1"\n[[methods]]\nmethod = "pooling"',
}


@pytest.mark.parametrize("what", FOREIGN)
def test_code_of_a_file_needs_consent(tmp_path: Path, what: str) -> None:
    file = tmp_path / "theirs.toml"
    file.write_text(f"{HEAD}{FOREIGN[what]}\n", "utf-8")
    with pytest.raises(InputError) as caught:
        read_experiment(file, allow_code=False)
    assert caught.value.file == str(file)
    assert caught.value.key
    assert caught.value.remedy is not None
    assert "--allow-code" in caught.value.remedy
    assert len(str(caught.value).splitlines()) == 1
    assert read_experiment(file).methods, "what the user wrote needs no consent"


def test_other_files_need_none(tmp_path: Path) -> None:
    file = tmp_path / "theirs.toml"
    file.write_text(PLAIN + '[[methods]]\nmethod = "pretrained"\n', "utf-8")
    assert len(read_experiment(file, allow_code=False).methods) == 2
