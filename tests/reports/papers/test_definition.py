"""Definitions of papers' reports: those that ship, a user's own, and what is refused."""

from __future__ import annotations

import csv
import json

import pytest

from harness.errors import InputError
from reports.build import build_report
from reports.papers import definition
from tests.support import invented_runs as made
from tests.support.errors import raises_input_error

USER = """
title = "Mine"
published = "mine.csv"
bases = { bert-base = ["google-bert/bert-base-uncased"] }
[[columns.c]]
title = "STS-B"
published = "STS-B"
score = "STS-B spearman all"
[[tables]]
key = "t"
title = "T"
published = ["T 1"]
columns = "c"
headline = ["STS-B"]
rows = [{ label = "SCD", published = ["S"], method = "scd" }]
"""


def test_the_papers_ship():
    assert definition.names() == [
        "cropping",
        "declutr",
        "noncontrastive",
        "scd",
        "self-guided",
        "simcse",
    ]
    assert sum(len(definition.load(name).tables) for name in definition.names()) == 41
    assert sum(len(definition.load(name).figures) for name in definition.names()) == 12


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('columns = "c"', 'columns = "d"', '"d"'),
        ("STS-B spearman all", "average stss", '"stss" (did you mean "sts"?)'),
        ("STS-B spearman all", "trials best", '"best"'),
        ("STS-B spearman all", "difference STS", '"STS"'),
        ('key = "t"', 'key = "t"\nreference = ["SCDD"]', '"SCDD" (did you mean "SCD"?)'),
        ('key = "t"', 'key = "t"\nfoo = 1', '"tables.0.foo"'),
        ("rows = [", 'rows = ["SCD", ', '"tables.0.rows.0"'),
        ('title = "Mine"', "", '"title"'),
        ('published = "mine.csv"', 'published = "mine.csv"\nruns = 0', '"runs"'),
        (
            'published = "mine.csv"',
            'published = "mine.csv"\nfigures = [{ kind = "layer" }]',
            '"figures.0.kind"',
        ),
        (
            'published = "mine.csv"',
            'published = "mine.csv"\nfigures = [{ kind = "scan" }]',
            '"key"',
        ),
    ],
)
def test_a_wrong_definition_is_one_line_with_file_and_key(tmp_path, old, new, key):
    file = tmp_path / "mine.toml"
    file.write_text(USER.replace(old, new, 1))
    with raises_input_error() as caught:
        definition.load(str(file))
    said = str(caught.value)
    assert key in said
    assert str(file) in said


def test_a_row_can_be_repeated_by_its_label(tmp_path):
    again = '[[tables]]\nkey = "u"\ntitle = "U"\ncolumns = "c"\nrows = ["SCD"]\n'
    (tmp_path / "mine.toml").write_text(USER + again)
    first, second = definition.load(str(tmp_path / "mine.toml")).tables
    assert first.rows == second.rows


def test_a_users_own_definition_with_its_own_numbers(tmp_path):
    evil = "<script>alert(1)</script> $x$ \\input{y}"
    for seed in (1, 2, 3):
        made.run(
            tmp_path / "work",
            "scd",
            made.recipe("scd"),
            seed,
            scores=made.sts(73 + seed),
            corpus=made.WIKI,
        )
    (tmp_path / "mine.toml").write_text(USER.replace('"Mine"', json.dumps(evil)))
    with (tmp_path / "mine.csv").open("w", newline="") as stream:
        stream.write("paper,table,model,base_model,task,metric,value,source_mark,notes\n")
        csv.writer(stream).writerow(["p", "T 1", "S", "bert-base", "STS-B", "m", "75.0", "", evil])
    written = build_report(str(tmp_path / "mine.toml"), tmp_path / "work", out=tmp_path / "out")
    assert "<script>alert(1)" not in written["html"].read_text()
    assert "\\input{y}" not in written["latex"].read_text()
    data = json.loads(written["json"].read_text())
    assert [(one["verdict"], one["n"]) for one in data["joined"]] == [("inside", 3)]
    with pytest.raises(InputError):
        build_report(str(tmp_path / "none.toml"), tmp_path / "work")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a,b\n1,2\n", None])
def test_published_numbers_that_cannot_be_read_are_refused(tmp_path, content):
    (tmp_path / "mine.toml").write_text(USER)
    if content is not None:
        (tmp_path / "mine.csv").write_bytes(content)
    with raises_input_error(file="mine" if content is None else tmp_path / "mine.csv"):
        definition.load(str(tmp_path / "mine.toml")).published_rows()
