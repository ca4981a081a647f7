"""The worked examples of CONTRIBUTING.md: one package, installed by pip, seen wherever ours are
seen.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import registry
from harness.cli import main
from harness.results.store import RunFolder, read_records
from harness.runs.inputs import forget_loaded
from harness.tasks import catalogue
from reports.comparison import comparison_document
from tests.support import short_runs
from tests.support.bases import narrow_bert

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "tests" / "third_party"
MODULES = ("align_uniform", "centred", "word_order", "order_suite", "seed_range", "halton")
# What a command prints goes to NAME.out.
COMMANDS = {
    "methods": "list methods",
    "tasks": "list tasks",
    "suites": "list suites",
    "plugins": "list plugins --json",
    "align_uniform": f"check-method align_uniform --json --base-model {narrow_bert()}",
    "centred": f"check-method centred --json --base-model {narrow_bert()}",
    "compare": "compare comparison.toml --workdir work --tracking-uri none --format md --format csv --quiet "
    f"--set base_models=['{narrow_bert()}']",
    "study": "study run search.toml --workdir work --tracking-uri none --quiet "
    f"--set base_model='{narrow_bert()}'",
}

pytestmark = pytest.mark.timeout(240)


def blocks(page: str, section: str = "") -> list[str]:
    """The blocks of Python and TOML of a page of the repository, or of what follows a heading of
    it.
    """
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    text = text.partition(section)[2] if section else text
    return re.findall(r"^```(?:python|toml)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_every_example_of_contributing_is_a_file_of_the_package() -> None:
    files = {
        file.name: file.read_text(encoding="utf-8") for file in PACKAGE.iterdir() if file.is_file()
    }
    quoted = blocks("CONTRIBUTING.md")
    assert [block for block in quoted if block not in files.values()] == []
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rest = [
        name
        for name, text in files.items()
        if text not in quoted and f"`tests/third_party/{name}`" not in page
    ]
    assert rest == ["align_uniform.py"], "the tutorial has this one"


def forget_plugins() -> None:
    """Look for packages again, as a new process does."""
    for name in MODULES:
        sys.modules.pop(name, None)
    registry._read_entry_points.cache_clear()
    catalogue.offers.cache_clear()
    importlib.invalidate_caches()
    forget_loaded()


def run_commands(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Run `COMMANDS` there, with few pairs and few figures, which take longest: of our own parts of
    the report the tables of scores, of the study's none.
    """
    short_runs.few_pairs(patch, 40)
    ours = [builder for builder in comparison_document.built_in() if builder.suites]
    patch.setattr(comparison_document, "built_in", lambda: ours)
    patch.setattr("reports.studies.study_figures.all_figures", lambda *_: ([], []))
    patch.setenv("COLUMNS", "200")
    patch.chdir(folder)
    for name, command in COMMANDS.items():
        with Path(f"{name}.out").open("w") as printed, contextlib.redirect_stdout(printed):
            assert main(command.split()) == 0, name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands ran, with the package installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("third-party")
    source = shutil.copytree(PACKAGE, folder / "source")  # a build leaves files beside the sources
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(folder / "site"),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    for name in ("comparison.toml", "search.toml"):
        shutil.copy(PACKAGE / name, folder / name)
    forget_plugins()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(folder / "site")
            run_commands(folder, patch)
    finally:
        forget_plugins()
    return folder


def printed(folder: Path, name: str) -> str:
    return (folder / f"{name}.out").read_text()


def test_they_are_listed_with_their_package(folder: Path) -> None:
    for name, line in (
        ("methods", r"align_uniform +Alignment and uniformity"),
        ("methods", r"centred +Centred pooling"),
        ("tasks", r"word-order +order"),
        ("suites", r"order +sentences and their words shuffled, distinguished"),
    ):
        assert re.search(f"^{line}", printed(folder, name), re.MULTILINE), line
    plugins = json.loads(printed(folder, "plugins")).values()
    assert {
        (p["group"], p["name"], p["fault"]) for p in plugins if p["package"] == "sentence-extras"
    } == {
        ("harness.methods", "align_uniform", ""),
        ("harness.methods", "centred", ""),
        ("harness.tasks", "word-order", ""),
        ("harness.suites", "order", ""),
        ("harness.tables", "seed-range", ""),
        ("harness.samplers", "halton", ""),
    }


@pytest.mark.parametrize("method", ["align_uniform", "centred"])
def test_the_methods_keep_the_promises_of_the_interface(folder: Path, method: str) -> None:
    checked = json.loads(printed(folder, method))
    assert checked["passed"], [check for check in checked["checks"] if not check["passed"]]


def test_the_comparison_has_their_rows_and_scores(folder: Path) -> None:
    runs = read_records(folder / "work", "comparison")
    assert [(run.row, run.seed, run.status) for run in runs] == [
        ("align_uniform", 1, "finished"),
        ("align_uniform", 2, "finished"),
        ("centred", 1, "finished"),
        ("untrained (mean)", 1, "finished"),  # what both start from
    ]
    for run in runs:
        (score,) = (score for score in run.scores if score.suite == "order")
        assert (score.task, score.metric, score.n) == ("word-order", "accuracy", 300)
        assert run.protocols[score.protocol]["classifier"] == "logistic regression, C = 1"
        outcomes = RunFolder(folder / "work", run.id).outcomes()
        assert outcomes["outcome"].mean() == pytest.approx(score.value)
        assert outcomes["unit"].nunique() == 150, "the forms of a sentence are one unit"
    shown = printed(folder, "compare")
    assert "align_uniform" in shown
    assert "centred" in shown


def test_the_report_has_a_table_of_their_suite_and_their_table(folder: Path) -> None:
    runs = read_records(folder / "work", "comparison")
    tables: dict[str, Any] = json.loads((folder / "work/reports/comparison/data.json").read_text())[
        "tables"
    ]
    suite = tables["suite-order"]
    assert [row["name"] for row in suite["rows"]] == [
        "untrained (mean)",
        "align_uniform",
        "centred",
    ]
    column = suite["columns"][-1]
    assert (column["title"], column["sub"]) == (
        "word-order",
        "accuracy · chance 50.00 · 300 examples",
    )
    (centred,) = (
        score.value
        for run in runs
        if run.row == "centred"
        for score in run.scores
        if score.suite == "order"
    )
    # The standard error of 300 examples leaves a second decimal nothing to say.
    assert suite["rows"][2]["cells"][column["key"]]["text"] == f"{100 * centred:.1f}"
    (line,) = tables["seed-range"]["rows"]  # the other row has one seed
    first, second = (
        run.score("Embedded-STS-natural") for run in runs if run.row == "align_uniform"
    )
    assert line["cells"]["Embedded-STS-natural"]["text"] == f"{100 * abs(first - second):.2f}"
    pages = folder / "work" / "reports" / "comparison"
    page = (pages / "report.md").read_text(encoding="utf-8")
    assert (
        page.index("Suite order")
        < page.index("How sure the result is")
        < page.index("How far apart seeds lie")
    )
    assert {"suite-order.csv", "seed-range.csv"} <= {
        file.name for file in (pages / "tables").iterdir()
    }


def test_the_study_asked_their_sampler(folder: Path) -> None:
    from scipy.stats import qmc

    shares = [run.config["share"] for run in read_records(folder / "work", "search")]
    assert len(shares) == 3  # Optuna draws the first one itself, to learn the space
    assert all(
        np.isclose(shares, point).any()
        for point in qmc.Halton(1, scramble=True, seed=0).random(2).ravel()
    )
