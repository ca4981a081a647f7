"""A report of a work directory from somebody else writes and deletes nothing outside of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness.cli import main
from harness.errors import InputError
from harness.files.links import real_path
from harness.results.store import checked_workdir
from reports.build import build_report
from reports.decide.gate_answer import gate
from studies.storage import studies_in
from tests.support import synthetic

PLACES = (
    "reports/invented/figures",
    "reports/invented/tables",
    "reports/invented/figures/deep",
    "reports/invented/index.html",
    "reports/invented",
    "reports",
    "cache",
    "cache/embeddings",
    "plans",
    "mlartifacts",
    "comparisons/invented.json",
    "progress.json",
    "mlflow.db",
    ".progress.lock",
    "runs",
)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work directory with a report; not to be changed."""
    workdir = tmp_path_factory.mktemp("reported") / "work"
    synthetic.Invented(workdir, scale=0.03).add("a", tasks=("STS-B", "Embedded-STS-natural"))
    build_report("invented", workdir, formats=["md"])
    return workdir


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_written_or_deleted_through_a_link_that_leads_out(
    reported: Path, tmp_path: Path, place: str
) -> None:
    workdir = shutil.copytree(reported, tmp_path / "work")
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("precious.txt", ".precious.txt.part", ".hidden"):
        (outside / name).write_text("precious")
    before = sorted((str(p), p.stat().st_mtime_ns) for p in outside.rglob("*"))

    listed = workdir / "reports" / "invented" / "data.json"
    tree = json.loads(listed.read_text())
    tree["files"] += ["figures/precious.txt", "tables/precious.txt", "figures/deep/precious.txt"]
    listed.write_text(json.dumps(tree))
    link = workdir / place
    if link.exists():
        link.rename(tmp_path / "before")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside / "precious.txt" if link.suffix else outside)

    with pytest.raises(InputError) as refused:
        build_report("invented", workdir, formats=["md", "html"])
    assert refused.value.file == str(link)
    with pytest.raises(InputError) as refused:
        checked_workdir(workdir)
    assert refused.value.file == str(link.absolute())
    assert main(["track", "sync", "--workdir", str(workdir)]) == 2
    assert sorted((str(p), p.stat().st_mtime_ns) for p in outside.rglob("*")) == before


def test_runs_may_be_elsewhere_and_links_that_stay_inside_are_followed(tmp_path: Path) -> None:
    workdir = tmp_path / "work"
    synthetic.Invented(workdir, scale=0.03).add("a", tasks=("STS-B", "Embedded-STS-natural"))
    (workdir / "runs").rename(tmp_path / "large-disk")
    (workdir / "runs").symlink_to(tmp_path / "large-disk")
    (workdir / "reports").mkdir()
    (workdir / "reports" / "real").mkdir()
    (workdir / "reports" / "invented").symlink_to("real")
    (workdir / "data").symlink_to(tmp_path)  # of the user
    checked_workdir(workdir)
    build_report("invented", workdir, formats=["md"])
    assert (workdir / "reports" / "real" / "report.md").is_file()


def test_a_journal_or_history_that_is_a_link_out_is_not_touched(tmp_path: Path) -> None:
    workdir = tmp_path / "work"
    workdir.mkdir()
    precious = tmp_path / "precious.txt"
    precious.write_text("no line feed at the end")
    for name in ("studies.journal", "gate.jsonl"):
        (workdir / name).symlink_to(precious)
    with pytest.raises(InputError) as refused:
        studies_in(workdir)
    assert refused.value.file == str(workdir / "studies.journal")
    (workdir / "scores.csv").write_text(
        "row,seed,task,score\n" + "".join(f"{r},{n},T,{70 + n}\n" for r in "ab" for n in range(6))
    )
    with pytest.raises(InputError) as refused:
        gate(workdir / "scores.csv", baseline="a", candidate="b")
    assert refused.value.file == str(workdir / "gate.jsonl")
    assert precious.read_text() == "no line feed at the end"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious.txt", "work"]


def test_a_link_to_itself_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "progress.json").symlink_to("progress.json")
    checked_workdir(tmp_path)


def test_an_own_folder_with_a_link_is_refused_too(tmp_path: Path) -> None:
    workdir = tmp_path / "work"
    synthetic.Invented(workdir, scale=0.03).add("a", tasks=("STS-B", "Embedded-STS-natural"))
    out = tmp_path / "out"
    out.mkdir()
    os.symlink(tmp_path, out / "figures")
    with pytest.raises(InputError) as refused:
        build_report("invented", workdir, out=out, formats=["md"])
    assert refused.value.file == str(out / "figures")


def test_what_a_report_does_not_write_is_not_searched_for_links(tmp_path: Path) -> None:
    workdir = tmp_path / "work"
    synthetic.Invented(workdir, scale=0.03).add("a", tasks=("STS-B", "Embedded-STS-natural"))
    out = tmp_path / "out"
    (out / "mine").mkdir(parents=True)
    os.symlink(tmp_path, out / "mine" / "all")
    build_report("invented", workdir, out=out, formats=["md"])
    assert (out / "report.md").is_file()
    assert (out / "mine" / "all").is_symlink()


def test_a_work_directory_that_is_a_link_to_itself_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "small.toml").write_text(
        'methods = ["pooling"]\nsuites = ["Embedded-STS-contrast"]\n'
    )
    for name in ("loop", "dangling"):
        place = str(tmp_path / name)
        assert main(["track", "sync", "--workdir", place]) == 2
        assert main(["compare", str(tmp_path / "small.toml"), "--freeze", "--workdir", place]) == 2
    assert real_path(tmp_path / "loop") == tmp_path / "loop"
