"""Misspelt words of the command line, with the nearest one, and examples of the help."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli import build_parser, main


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["comapre", "demo"], 'unknown "comapre" (did you mean "compare"?)'),
        (["study", "rnu", "x"], 'unknown "rnu" (did you mean "run"?)'),
        (
            ["compare", "demo", "--wrkdir", "x"],
            'unknown option --wrkdir (did you mean "--workdir"?)',
        ),
        (
            ["train", "simcse", "--otu=x"],
            'unknown option --otu (did you mean "--out"?)',
        ),  # before: --out is needed
        (
            ["study", "run", "x", "--workers=2", "--qick"],
            'unknown option --qick (did you mean "--quick"?)',
        ),
        (
            ["compare", "demo", "--workd", "x"],
            'unknown option --workd (did you mean "--workdir"?)',
        ),  # no abbreviations
        (
            ["verdict", "a", "b", "--task=x"],
            "unknown option --task; ",
        ),  # no "--json", which shares its dashes
        (["status", "tests"], "unrecognized arguments: tests"),
        (["evaluate", "m", "--suite", "sts,mr"], "expected one name"),
        (["evaluate", "m", "--suite", "mteb-benchmark:MTEB(eng, v2),sts"], "expected one name"),
        (["evaluate", "m", "--source", "mtebb"], 'unknown "mtebb" (did you mean "mteb"?)'),
        (["compare", "x", "--\x1b[31m"], "unknown option --\u241b[31m"),
        (
            ["train", "simcse", "--out", "x", "--limit", "nan"],
            '--limit: expected a whole number, not "nan"',
        ),
        (["power", "--sd", "1\n2"], '--sd: expected a number, not "1 2"'),
        (["study", "show"], "the following arguments are required: name"),
        (["compare", "demo", "--format"], "--format: expected one argument"),
    ],
)
def test_a_wrong_word_ends_with_one_line(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("harness: ")
    assert said in line


def test_what_argparse_takes_is_taken() -> None:
    parser = build_parser()
    parsed = parser.parse_args(
        ["compare", "demo", "--workdir", "w", "--set=seeds=[1]", "--format=md", "--format=csv"]
    )
    assert (parsed.workdir, parsed.overrides, parsed.format) == (
        Path("w"),
        ["seeds=[1]"],
        ["md", "csv"],
    )
    assert parser.parse_args(["verdict", "--", "--odd row", "--other"]).rows == [
        "--odd row",
        "--other",
    ]


def parsers_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    inner = [
        a for a in parser._actions if isinstance(a, argparse._SubParsersAction)
    ]  # argparse has no public way to them
    yield parser
    for action in inner:
        for command in action.choices.values():
            yield from parsers_of(command)


def test_every_help_ends_with_an_example_that_is_valid() -> None:
    parser = build_parser()
    for command in parsers_of(parser):
        _, found, example = (command.epilog or "").partition("example: ")
        assert found, command.prog
        words = shlex.split(example.partition(";")[0])
        assert words[: len(command.prog.split())] == command.prog.split()
        parser.parse_args(words[1:])


def test_a_command_of_before_names_the_one_in_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", "demo", "--freeze"])
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "harness compare --dry-run" in last
    assert "harness compare --freeze" in last


def test_a_comma_in_a_name_separates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of mteb's benchmarks have commas, and files may have some."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b.csv").touch()
    names = ["mteb-benchmark:MTEB(eng, v2)", "a,b.csv", "sts"]
    words = [word for name in names for word in ("--suite", name)]
    assert build_parser().parse_args(["evaluate", "model", *words]).suite == names
