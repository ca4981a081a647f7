"""A disk that is full ends a command with exit code 1 and one line; once there is room, the same
command does the whole.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main
from harness.files.atomic import append_line
from tests.support import synthetic
from tests.support.full_disk import room_for

SCORES = {"a": [70, 71, 72, 73, 74, 75], "b": [80, 81, 82, 83, 84, 85]}
EXPERIMENT = """
methods = [{ method = "pooling" }]
suites = ["Embedded-STS-contrast"]
"""


@pytest.mark.parametrize("room", [0, 1, 9])
def test_a_line_that_has_no_room_leaves_no_part(tmp_path: Path, room: int) -> None:
    file = tmp_path / "lines"
    append_line(file, "first")
    with room_for(len("first\n") + room), pytest.raises(OSError):
        append_line(file, "0123456789")
    assert file.read_text() == "first\n"
    append_line(file, "second")
    assert file.read_text() == "first\nsecond\n"


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A folder with scores, an experiment and the records of a comparison."""
    lines = ["row,seed,task,score"]
    for row, scores in SCORES.items():
        lines += [f"{row},{seed},T,{score}" for seed, score in enumerate(scores)]
    (tmp_path / "scores.csv").write_text("\n".join(lines))
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    synthetic.Invented(tmp_path / "work", scale=0.03).add("a", tasks=("STS-B",))
    return tmp_path


@pytest.mark.parametrize("room", [0, 300])
@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("gate --baseline=a --candidate=b --scores={0}/scores.csv --history={0}/new", "new"),
        ("new method own --out={0}/new", "new/own.py"),
        ("report build invented --workdir={0}/work --out={0}/new", "new/index.html"),
        ("compare {0}/small.toml --freeze --workdir={0}/new", "new/plans/small.json"),
    ],
)
def test_a_command_ends_with_one_line_and_succeeds_once_there_is_room(
    inputs: Path, command: str, made: str, room: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command.format(inputs).split()
    target = inputs / made
    with room_for(room):
        assert main(words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("harness: ")
    assert not target.exists() or target.read_bytes() == b""
    assert main(words) == 0
    assert target.read_bytes()
