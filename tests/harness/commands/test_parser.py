"""What the command line says to words that are nearly right, and the completion of shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.cli import build_parser, main
from harness.commands.completion import SHELLS, script


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["comapre", "demo"], 'unknown "comapre" (did you mean "compare"?)'),
        (["study", "rnu", "x"], 'unknown "rnu" (did you mean "run"?)'),
        (["compare", "demo", "--wrkdir", "x"], 'unknown option --wrkdir (did you mean "--workdir"?)'),
        (["train", "simcse", "--otu=x"], 'unknown option --otu (did you mean "--out"?)'),  # before: --out is needed
        (["study", "run", "x", "--worker=2", "--qick"], 'unknown option --qick (did you mean "--quick"?)'),
        (["--versoin"], 'unknown option --versoin (did you mean "--version"?)'),
        (["evaluate", "m", "--source", "mtebb"], 'unknown "mtebb" (did you mean "mteb"?)'),
        (["compare", "x", "--\x1b[31m"], "unknown option --\u241b[31m"),
    ],
)
def test_the_nearest_word_is_named(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_what_argparse_takes_is_taken() -> None:
    parser = build_parser()
    assert (
        parser.parse_args(["compare", "demo", "--workd", "w", "--set=seeds=[1]"]).workdir == "w"
    )  # a beginning is enough
    assert parser.parse_args(["verdict", "w", "--", "--odd row", "--other"]).rows == ["--odd row", "--other"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_completes_commands_options_and_methods(shell: str, tmp_path: Path) -> None:
    text = script(shell, build_parser())
    assert all(word in text for word in ("check-method", "workdir", "contrastive_tension", "until"))
    if shutil.which(shell):
        (tmp_path / "script").write_text(text)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
    if shell == "bash":
        ask = (
            f"source {tmp_path / 'script'}; COMP_WORDS=(harness compare --reh); COMP_CWORD=2; "
            "_shtab_harness; echo ${COMPREPLY[@]}"
        )
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["--rehearse"]


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert "_shtab_harness" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["completion", "bsh"])
    assert 'did you mean "bash"' in capsys.readouterr().err
