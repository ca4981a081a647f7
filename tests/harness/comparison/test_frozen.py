"""A work directory of an earlier version (tests/frozen): its runs stand, its numbers stay, it can be gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cli import main
from harness.results.manifest import read_manifest, read_records
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.tasks.catalogue import resolve_tasks

FROZEN = Path(__file__).resolve().parents[2] / "frozen"
COMPARE = ["compare", "frozen.toml", "--workdir", "work", "--no-tracking", "--quiet", "--format", "csv"]
STUDY = ["study", "run", "temperature.toml", "--workdir", "work", "--no-tracking", "--quiet"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to work in, which is the current folder."""
    shutil.copytree(FROZEN, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    write = RunFolder.write

    def never_again(folder: RunFolder, record: Record) -> None:
        assert not (FROZEN / "work" / "runs" / record.id).exists(), "a run that is there was made again"
        assert record.supervision == "untrained", "only the starts that the file lacks are new"
        write(folder, record)

    monkeypatch.setattr("harness.results.run_folder.RunFolder.write", never_again)


def run_files() -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(Path("work/runs").rglob("*")) if file.is_file()}


def numbers(tree: Any, path: str = "") -> dict[str, Any]:
    """Every number of a report's data, and every number that a table shows as text, by place.

    Of a mean the whole value and deviation alone: with how many decimals it is shown goes by its noise.
    """
    if isinstance(tree, dict):
        shown = {"text"} | ({"spread"} if str(tree.get("spread", "±")).startswith("±") else set())
        tree = {key: part for key, part in tree.items() if not ("value" in tree and key in shown)}
        return {key: n for name, part in tree.items() for key, n in numbers(part, f"{path}/{name}").items()}
    if isinstance(tree, list):
        return {key: n for place, part in enumerate(tree) for key, n in numbers(part, f"{path}/{place}").items()}
    return {path: tree} if isinstance(tree, int | float) or path.endswith(("/text", "/spread")) else {}


def without_added(data: dict[str, Any]) -> dict[str, Any]:
    """A report's data without the untrained starts, which comparisons of before did not add to their rows.

    A line of a table of layers has no row's name: it goes by its runs. (On the processor of the record a start's scores
    are its row's to the bit and share its line; on another the kept run's are not, and the start has its own.)
    """
    added = {run for run, about in data["runs"].items() if about["row"].startswith("untrained ")}
    for table in data["tables"].values():
        table["rows"] = [
            row
            for row in table["rows"]
            if not row["name"].startswith("untrained ")
            and not any(
                set(cell.get("records", ())) and set(cell["records"]) <= added for cell in row["cells"].values()
            )
        ]
    data["runs"] = {run: about for run, about in data["runs"].items() if not about["row"].startswith("untrained ")}
    for key, lists in (("setup", "setups"), ("environment", "environments")):
        used = sorted({about[key] for about in data["runs"].values()})
        data[lists] = [data[lists][place] for place in used]
        for about in data["runs"].values():
            about[key] = used.index(about[key])
    return data


def is_judgement(path: str) -> bool:
    """A difference to an untrained row, or a rank: later versions judge the same scores otherwise, hold a row against
    its own start alone, where this report took the best untrained row in its place, and rank those starts too."""
    return path.startswith("/tables/against-base/") or path.endswith("/rank")


@pytest.mark.usefixtures("never_run")
def test_compare_makes_no_run_again_and_every_number_of_the_report_stays(here: Path) -> None:
    before = run_files()
    ids = [cell["id"] for cell in read_manifest(Path("work"), "frozen")["cells"]]  # type: ignore[index]
    assert main(COMPARE) == 0
    cells = read_manifest(Path("work"), "frozen")["cells"]  # type: ignore[index]
    assert [cell["id"] for cell in cells if "counterpart" not in cell] == ids
    assert run_files().items() >= before.items()  # reading migrates, and rewrites nothing
    expected = numbers(json.loads((here / "data.json").read_text()))
    found = numbers(without_added(json.loads(Path("work/reports/frozen/data.json").read_text())))
    assert len(expected) > 1000
    scores = {path: value for path, value in expected.items() if not is_judgement(path)}
    assert len(expected) - len(scores) < 150
    assert {path: found.get(path) for path in scores} == scores


@pytest.mark.usefixtures("here", "never_run")
@pytest.mark.parametrize("more", [[], ["--force-new"]], ids=["its trials", "its trials forgotten, its runs there"])
def test_a_study_makes_no_run_again(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = run_files()
    assert main([*STUDY, *more]) == 0
    assert run_files() == before
    assert "32.85" in capsys.readouterr().out  # the best trial's dev score, as it was


@pytest.mark.usefixtures("here")
def test_another_task_is_scored_alone_and_nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("harness.training.TrainedMethod.fit", never)
    monkeypatch.setattr("methods.whitening.Whitening.fit", never)
    before = {record.id: record for record in read_records(Path("work"), "frozen")}
    suites = json.dumps([*read_manifest(Path("work"), "frozen")["experiment"]["suites"], "Embedded-Sentiment-contrast"])  # type: ignore[index]
    assert main([*COMPARE, "--set", f"suites={suites}"]) == 0
    after = {record.id: record for record in read_records(Path("work"), "frozen")}
    assert {record.supervision for run, record in after.items() if run not in before} == {"untrained"}
    for run in before:
        record = after[run]
        new = [score for score in record.scores if score not in before[run].scores]
        assert [s for s in record.scores if s not in new] == before[run].scores
        assert {score.task for score in new} == ({"Embedded-Sentiment-contrast"} if before[run].scores else set())


def test_protocol_ids_are_what_they_were() -> None:
    record = next(r for r in read_records(FROZEN / "work", "frozen") if r.row == "mean")

    def ids(scores: Any) -> dict[tuple[str, ...], tuple[str, str]]:
        return {(s.task, s.split, s.metric, s.aggregation): (s.protocol, s.comparable) for s in scores}

    def encode(texts: Any) -> Any:
        return np.random.default_rng(0).normal(size=(len(texts), 8)).astype(np.float32)

    scores = [
        score
        for task in resolve_tasks(["embedded", "Embedded-Questions", "Embedded-Paraphrase-natural"])
        for score in task.evaluate(encode, pooling="mean").scores
    ]
    assert len(ids(scores)) == len(scores) > 20
    assert ids(scores).items() <= ids(record.scores).items()
