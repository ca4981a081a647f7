"""The page on which rows of several senders are ranked: what joins, what stands apart, and what is
refused.
"""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from harness.cli import main
from harness.errors import InputError
from harness.results.store import RunFolder
from reports.build import build_report
from reports.document.blocks import Figure
from reports.joined.joined_document import describe_joined, describe_pairs
from reports.joined.joiner import join
from reports.load import read_comparison
from reports.stats.significance import Significance
from reports.stats.verdicts import Ranking
from tests.support.devtools import PROGRAM, Browser
from tests.support.synthetic import Invented, write_comparison

TASK = "Embedded-STS-natural"


def fill(folder: Path, rows: dict[str, float], name: str = "invented") -> Invented:
    """Write a work directory of rows with three seeds each, noisier rows being worse."""
    folder.mkdir()
    made = Invented(folder, name, scale=0.5)
    records = []
    for row, noise in rows.items():
        for seed in (1, 2, 3):
            records.append(made.add(row, seed, noise=noise, tasks=(TASK,), geometry=False))
    write_comparison(folder, records, name=name)
    return made


def pack(folder: Path, to: Path, **manifest: str) -> Path:
    if manifest:
        (folder / "pack.json").write_text(json.dumps(manifest), encoding="utf-8")
    with tarfile.open(to, "w:gz") as archive:
        for part in folder.iterdir():
            archive.add(part, part.name)
    return to


def table_of(made: Invented, row: str, seeds: tuple[int, ...], **more: str) -> pd.DataFrame:
    """Return scores of examples by the contract, of which the gold scores are known."""
    gold = made.gold[TASK]
    draw = np.random.default_rng(7)
    frames = []
    for seed in seeds:
        columns = {
            "row": row,
            "seed": seed,
            "task": TASK,
            "example": np.arange(1, len(gold) + 1),
            "score": np.round(gold / 10 + 0.05 * draw.normal(size=len(gold)), 4),
            "target": gold,
            **more,
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Invented]:
    folder = tmp_path_factory.mktemp("base") / "work"
    return folder, fill(folder, {"SimCSE": 1.0, "SCD": 2.0, "mean": 3.0})


@pytest.fixture(scope="module")
def sent(base: tuple[Path, Invented], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """An archive, a table with a whole row, one without examples, and one with two runs."""
    folder = tmp_path_factory.mktemp("sent")
    fill(folder / "theirs", {"SimCSE": 0.5}, "other")
    archive = pack(
        folder / "theirs", folder / "theirs.tar.gz", submitter="Ann", link="https://example.org/a"
    )
    _, made = base
    whole = table_of(made, "near gold", (1,), submitter="Bo", date="2026-11-01")
    lone = pd.DataFrame([{"row": "only a mean", "seed": "1", "task": TASK, "score": 0.5}])
    other = pd.DataFrame([{"row": "elsewhere", "seed": "1", "task": "STS-B", "score": 0.7}])
    table = folder / "scores.csv"
    whole.to_csv(table, index=False)
    short = folder / "short.csv"
    pd.concat([lone, other]).to_csv(short, index=False)
    two = folder / "two.csv"
    table_of(made, "two runs", (1, 2)).to_csv(two, index=False)
    return [archive, table, short, two]


@pytest.fixture(scope="module")
def page(base: tuple[Path, Invented], sent: list[Path]) -> Path:
    return build_report("invented", base[0], formats=["html"], with_files=sent)["html"]


@pytest.fixture(scope="module")
def data(page: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(page.with_name("data.json").read_text(encoding="utf-8"))
    return read


def test_rows_of_all_senders_are_ranked_by_scores_of_their_examples(
    data: dict[str, Any], base: tuple[Path, Invented], sent: list[Path]
) -> None:
    rows = {row["name"]: row["cells"] for row in data["tables"]["joined"]["rows"]}
    assert rows.keys() == {"near gold", "SimCSE (Ann)", "SimCSE", "SCD", "mean"}
    frame = pd.read_csv(sent[1])
    whole = frame[frame["row"] == "near gold"]
    expected = 100 * spearmanr(whole["score"], whole["target"]).statistic
    assert rows["near gold"]["score"]["value"] == pytest.approx(expected, abs=1e-9)
    scores = [cells["score"]["value"] for cells in rows.values()]
    assert scores == sorted(scores, reverse=True)
    assert rows["mean"]["rank"]["value"] > rows["near gold"]["rank"]["value"]


def test_sender_date_link_and_conditions_are_shown(data: dict[str, Any], page: Path) -> None:
    rows = {row["name"]: row["cells"] for row in data["tables"]["joined"]["rows"]}
    ann = rows["SimCSE (Ann)"]
    assert (ann["submitter"]["text"], ann["date"]["text"]) == ("Ann", "2025-01-01")
    assert ann["conditions"]["text"] == rows["SimCSE"]["conditions"]["text"]
    assert '<a href="https://example.org/a"' in page.read_text(encoding="utf-8")
    near = rows["near gold"]
    assert (near["submitter"]["text"], near["date"]["text"]) == ("Bo", "2026-11-01")
    assert near["conditions"]["text"].startswith("not known")


def test_incomplete_rows_stand_apart(data: dict[str, Any]) -> None:
    rows = {row["name"]: row["cells"] for row in data["tables"]["incomplete"]["rows"]}
    assert rows.keys() == {"only a mean", "elsewhere", "two runs"}
    assert rows["only a mean"]["score"]["value"] == pytest.approx(50.0)
    assert "value" not in rows["elsewhere"]["score"] or rows["elsewhere"]["score"]["value"] is None
    assert not rows.keys() & set(data["pairs"]["rows"])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"metric": "pearson"}, "pearson"),
        ({"split": "dev"}, "dev"),
        ({"lower_is_better": "true"}, "lower"),
        ({"target": None}, "gold"),
    ],
)
def test_scores_of_another_kind_are_not_ranked(
    change: dict[str, Any], word: str, base: tuple[Path, Invented], tmp_path: Path
) -> None:
    """They are numbers of the same examples, and would be a score of another measure."""
    folder, made = base
    table = tmp_path / "scores.csv"
    table_of(made, "near gold", (1,)).assign(**change).to_csv(table, index=False)
    written = build_report("invented", folder, formats=["csv"], with_files=[table], out=tmp_path)
    data = json.loads(written["json"].read_text(encoding="utf-8"))
    (row,) = data["tables"]["incomplete"]["rows"]
    assert row["name"] == "near gold"
    assert word in row["cells"]["lacks"]["text"]
    assert row["cells"]["score"].get("value") is None


def test_an_untrained_row_of_another_base_model_joins_trained_ones(tmp_path: Path) -> None:
    """It has no training steps to compare; rows of another base model than most name it."""
    made = Invented(tmp_path / "work", scale=0.5)
    records = []
    for model in ("embedded:mini-bert", "bert-base-uncased"):
        for seed in (1, 2, 3):
            record = made.add("SCD", seed, tasks=(TASK,), geometry=False, base=model)
            training = {**record.training, "planned_steps": 250}
            stored = record.model_copy(update={"training": training})
            RunFolder(tmp_path / "work", record.id).write(stored)
            records.append(stored)
    write_comparison(tmp_path / "work", records, name="invented")
    other = Invented(tmp_path / "other", "other", scale=0.5)
    start = other.add("mean", 1, supervision="untrained", tasks=(TASK,), geometry=False)
    write_comparison(tmp_path / "other", [start], name="other")
    written = build_report(
        "invented", tmp_path / "work", formats=["csv"], with_files=[tmp_path / "other"]
    )
    data = json.loads(written["json"].read_text(encoding="utf-8"))
    rows = {row["name"]: row["cells"] for row in data["tables"]["joined"]["rows"]}
    assert rows.keys() == {"SCD", "SCD, bert-base-uncased", "mean"}
    assert rows["mean"]["conditions"]["text"] == "as the comparison"


@pytest.mark.parametrize(
    ("spec", "conditions"),
    [
        ({"precision": "fp32"}, "as the comparison"),
        ({"precision": "bf16"}, "trained in bf16"),
        ({"precision": "fp32", "numerics": 7}, "another version of the training code"),
    ],
)
def test_conditions_are_those_of_precision_and_code_too(
    spec: dict[str, Any], conditions: str, tmp_path: Path
) -> None:
    places = {"work": {"precision": "fp32"}, "other": spec}
    for name, own in places.items():
        (tmp_path / name).mkdir()
        made = Invented(tmp_path / name, name, scale=0.5)
        records = []
        for seed in (1, 2, 3):
            row = f"SimCSE of {name}"
            records.append(made.add(row, seed, tasks=(TASK,), geometry=False, spec=own))
        write_comparison(tmp_path / name, records, name=name)
    joined = join(read_comparison(tmp_path / "work", "work"), [tmp_path / "other"])
    assert [one.conditions for one in joined.rows] == ["as the comparison", conditions]


def test_a_row_has_no_start_of_another_base_model(tmp_path: Path) -> None:
    made = Invented(tmp_path, scale=0.5)
    records = [made.add("mean", 1, supervision="untrained", tasks=(TASK,), geometry=False)]
    for model in ("embedded:mini-bert", "bert-base-uncased"):
        for seed in (1, 2, 3):
            records.append(made.add("SCD", seed, tasks=(TASK,), geometry=False, base=model))
    write_comparison(tmp_path, records, name="invented")
    document = describe_joined(read_comparison(tmp_path, "invented"), []).document
    (figure,) = (block for block in document.sections[0].blocks if isinstance(block, Figure))
    untrained = records[0].scores[0].value
    assert figure.alt.count(" untrained") == 1
    assert f"from {100 * untrained:.2f} untrained" in figure.alt


def test_runs_that_are_here_already_join_once(base: tuple[Path, Invented], tmp_path: Path) -> None:
    folder = base[0]
    with pytest.raises(InputError) as caught:
        build_report("invented", folder, formats=["md"], with_files=[folder], out=tmp_path)
    assert Path(str(caught.value.file)) == folder


def spoil_score(made: Invented, folder: Path) -> Path:
    """Return the work directory itself with another score of one run."""
    work = shutil.copytree(made.workdir, folder / "theirs")
    run = next((work / "runs").iterdir())
    stored = RunFolder(work, run.name)
    record = stored.read()
    assert record is not None
    first, *others = record.scores
    scores = [first.model_copy(update={"value": 0.99}), *others]
    stored.write(record.model_copy(update={"scores": scores}))
    return work


def spoil_record(made: Invented, folder: Path) -> Path:
    """Return an archive of which one run's examples were written anew."""
    work = folder / "theirs"
    fill(work, {"SimCSE": 0.4}, "other")
    run = next((work / "runs").iterdir())
    stored = RunFolder(work, run.name)
    record = stored.read()
    assert record is not None
    digests = {"examples.parquet": "0" * 64}
    stored.write(record.model_copy(update={"files": digests}))
    return pack(work, folder / "spoilt.tar.gz")


def spoil_gold(made: Invented, folder: Path) -> Path:
    table = table_of(made, "mine", (1,))
    table["target"] += 1
    table.to_csv(folder / "gold.csv", index=False)
    return folder / "gold.csv"


def spoil_link(made: Invented, folder: Path) -> Path:
    table_of(made, "mine", (1,), link="javascript:alert(1)").to_csv(
        folder / "link.csv", index=False
    )
    return folder / "link.csv"


def spoil_archive(made: Invented, folder: Path) -> Path:
    (folder / "no.zip").write_bytes(b"PK\x03\x04 no archive")
    return folder / "no.zip"


@pytest.mark.parametrize(
    "spoil", [spoil_score, spoil_record, spoil_gold, spoil_link, spoil_archive]
)
def test_a_bad_file_is_refused_in_one_line_and_writes_nothing(
    spoil: Any, base: tuple[Path, Invented], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, made = base
    bad = spoil(made, tmp_path)
    out = tmp_path / "page"
    words = ["report", "build", "invented", "--workdir", folder, "--with", bad, "--out", out]
    assert main([str(word) for word in words]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert bad.name in said[0]
    assert not out.exists()


def test_each_pair_names_what_it_is_corrected_for(tmp_path: Path) -> None:
    made = Invented(tmp_path, scale=0.1)
    for seed in (1, 2, 3):
        made.add("SimCSE", seed, noise=0.3, geometry=False)
        made.add("SCD", seed, noise=1.0, geometry=False)
        made.add("random", seed, noise=15.0 * seed, supervision="untrained", pooling=None)
    comparison = read_comparison(tmp_path, "invented")
    significance = Significance(comparison)
    block = Ranking(comparison.rows, significance, significance.targets[0])
    found = describe_pairs(block)
    families = {}
    for i, j, *_, place in found["differences"]:
        pair = found["rows"][i], found["rows"][j]
        families[pair] = found["families"][place]
    against = ["p", "2 rows against the control random"]
    assert families == {
        ("SimCSE", "SCD"): ["p", "the only pair of rows"],
        ("SimCSE", "random"): against,
        ("SCD", "random"): against,
    }
    block.contenders *= 6
    assert block.letter_of(block.family) == "q"
    assert block.letter_of(against[1]) == "p"


@pytest.fixture(scope="module")
def chromium(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("needs a browser (Debian: chromium)")
    browser = Browser(PROGRAM, tmp_path_factory.mktemp("profile"))
    browser.open(page.as_uri(), width=390)
    yield browser
    browser.close()


def test_any_two_rows_have_a_verdict_in_a_browser(chromium: Browser, data: dict[str, Any]) -> None:
    rows = data["pairs"]["rows"]
    choose = "(place, row) => { const list = document.querySelectorAll('.two select')[place];"
    choose += " list.value = row; list.dispatchEvent(new Event('change')); }"
    said = "document.querySelector('.two p').innerText"
    first = next(one for one in data["pairs"]["differences"] if one[6] == "better")
    chromium.js(f"({choose})(0, {first[0]}); ({choose})(1, {first[1]})")
    text = chromium.js(said)
    assert f"{rows[first[0]]} against {rows[first[1]]}" in text
    assert f"better, +{first[2]:.2f} points" in text
    letter, family = data["pairs"]["families"][first[7]]
    assert re.search(rf"; {letter} [<=] \d\.\d+, corrected for {re.escape(family)}\.$", text)
    chromium.js(f"({choose})(0, {first[1]}); ({choose})(1, {first[0]})")
    assert f"worse, \u2212{first[2]:.2f} points" in chromium.js(said)
    assert chromium.errors == []


def test_the_page_sorts_and_fits_a_phone(chromium: Browser) -> None:
    head = "document.querySelectorAll('#table-joined thead tr:last-child th')[1]"
    chromium.js(f"{head}.querySelector('button').click()")
    chromium.js(f"{head}.querySelector('button').click()")
    column = "[...document.querySelector('#table-joined tbody').rows].map(r => Number(r.cells[1].dataset.v))"
    shown = chromium.js(column)
    assert shown == sorted(shown)
    assert chromium.js("document.documentElement.scrollWidth") <= 390
