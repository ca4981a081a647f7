"""What leaves for a terminal or a log: one line, nothing that the terminal obeys."""

from __future__ import annotations

import ast
import io
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.files.printable import SafeFormatter, encodable, safe_line

ROOT = Path(__file__).parents[3]
HOSTILE = {
    '"\\u001b[2J" = 1\n[[methods]]\nmethod = "untrained"': "␛[2J",
    '[[methods]]\nmethod = "a\\nharness: all is well"': "a harness: all is well",
    '[[methods]]\nmethod = "a\\u2028harness: all is well"': "harness: all is well",
    'title = 3\n"\\u202etxt" = 1\n[[methods]]\nmethod = "untrained"': "<U+202E>",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_file_cannot_write_on_the_terminal(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(text)
    assert main(["compare", str(file), "--workdir", str(tmp_path / "work")]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert not set("\x1b\u2028\u202e") & set(shown)


def test_a_line_stays_one_and_keeps_its_blanks() -> None:
    assert safe_line("  a\nb\r\nc\x1b]0;x\x07") == "  a b c␛]0;x␇"
    assert safe_line(b"caf\xe9".decode("utf-8", "surrogateescape")) == "caf<U+DCE9>"


def test_an_argument_cannot_write_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["list", "\x1b[2Jmethods"])
    assert "\x1b" not in capsys.readouterr().err


def test_a_log_is_told_line_by_line() -> None:
    entry = logging.LogRecord(
        "x", logging.WARNING, "", 0, "at %s", ("http://me:pw@host\x1b[2J",), None
    )
    assert SafeFormatter().format(entry) == "at http://***@host␛[2J"


def test_lines_leave_through_one_module() -> None:
    packages = ("harness", "methods", "reports", "studies")
    printing = {
        str(file.relative_to(ROOT))
        for package in packages
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    }
    assert printing == {"harness/files/printable.py"}


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command that prints a minus sign and letters of several scripts."""
    scores = tmp_path_factory.mktemp("scores") / "scores.csv"
    lines = ["row,seed,task,score"]
    lines += [f"né\u4e2d,{n},T,{70 + n / 10}\nb,{n},T,{80 + n / 9}" for n in range(1, 6)]
    scores.write_text("\n".join(lines) + "\n", "utf-8")
    return ["verdict", "--scores", str(scores)]


def test_a_process_prints_where_the_locale_has_ascii_only(verdict: list[str]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    command = [sys.executable, "-m", "harness", *verdict]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search("- #1", done.stdout.decode("ascii"))
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "gbk", "cp437", "utf-8"])
def test_a_command_prints_in_every_encoding(
    encoding: str, verdict: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = io.BytesIO()
    with io.TextIOWrapper(printed, encoding=encoding) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(verdict) == 0
        stream.flush()
        text = printed.getvalue().decode(encoding)
    minus = "\u2212" if encoding == "utf-8" else "-"
    assert re.search(f"{minus} #1", text)


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("\u22120.5 \u00b1 0.1", "ascii", "-0.5 +/- 0.1"),
        ("\u22120.5 \u00b1 0.1", "latin-1", "-0.5 \u00b1 0.1"),
        ("\u201ca\u201d \u2026 \u4e2d", "ascii", '"a" ... ?'),
        ("\u22120.5", "utf-8", "\u22120.5"),
        ("\u22120.5", "utf-16", "\u22120.5"),
    ],
)
def test_signs_that_an_encoding_lacks_are_plain_ones(
    text: str, encoding: str, expected: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert encodable(text, stream) == expected
