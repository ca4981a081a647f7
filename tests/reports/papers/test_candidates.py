"""Which runs fill a row of a definition: those of the comparisons that it names, and never one of
several.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.files.reading import read_toml
from harness.results.comparison import ComparisonFile, ListedRun
from harness.results.record import Record
from harness.results.store import read_comparison_file, write_comparison_file
from reports.build import build_report
from reports.papers import definition
from tests.support import invented_runs as made

DEFINITION = """
title = "My paper"
published = "mine.csv"
{names}

[bases]
bert-base = ["google-bert/bert-base-uncased"]

[[columns.sts]]
title = "STS-B"
published = "STS-B"
score = "STS-B spearman all"

[[tables]]
key = "table-1"
title = "Table 1"
published = ["Table 1"]
columns = "sts"
rows = [{{ label = "SimCSE", published = ["SimCSE-BERT"], method = "simcse"{where} }}]
"""
PUBLISHED = """paper,table,model,base_model,task,metric,value,source_mark,notes
Gao 2021,Table 1,SimCSE-BERT,bert-base,STS-B,spearman,76.85,,
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work directory with a comparison, and an ablation of the same method with more seeds."""
    workdir = tmp_path / "work"
    runs = {"paper": [simcse(workdir, "paper", 0.05, 76.0)], "ablation": []}
    for seed in (1, 2):
        runs["ablation"].append(simcse(workdir, "ablation", 0.1, 40.0, seed))
    for name, records in runs.items():
        listed = [
            ListedRun(id=r.id, row=r.row, base_model=r.base_model, seed=r.seed) for r in records
        ]
        write_comparison_file(workdir, ComparisonFile(name=name, runs=tuple(listed)))
    return workdir


def simcse(
    workdir: Path, comparison: str, temperature: float, score: float, seed: int = 1
) -> Record:
    return made.run(
        workdir,
        "simcse",
        {"temperature": temperature},
        seed,
        row=f"SimCSE {temperature}",
        comparison=comparison,
        corpus=made.WIKI,
        scores=made.sts(score),
    )


def measured(work: Path, names: str = "", where: str = "") -> str:
    """Our number beside the published one, as `tables/joined.csv` has it."""
    file = work.parent / "mine.toml"
    file.write_text(DEFINITION.format(names=names, where=where))
    (work.parent / "mine.csv").write_text(PUBLISHED)
    folder = build_report(str(file), work, out=work.parent / "out", formats=("csv",))["csv"]
    head, line = (text.split(",") for text in (folder / "joined.csv").read_text().splitlines())
    return dict(zip(head, line, strict=False))["ours"]


def test_several_configurations_are_an_error_that_lists_them(work: Path) -> None:
    with pytest.raises(InputError) as caught:
        measured(work)
    for part in ("SimCSE 0.05", "SimCSE 0.1", '"paper"', '"ablation"', "comparison ="):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("names", "score"),
    [('comparison = "paper"', 76), ('comparison = ["ablation"]', 40), ('comparison = "no"', None)],
)
def test_a_named_comparison_alone_fills_the_rows(
    work: Path, names: str, score: float | None
) -> None:
    ours = measured(work, names)
    assert (float(ours) if ours else None) == score


def test_the_configuration_tells_runs_apart_too(work: Path) -> None:
    assert float(measured(work, where=", where = { temperature = 0.1 }")) == 40


def test_runs_of_two_precisions_are_no_seeds_of_one_row(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for seed, precision, score in ((1, "fp32", 76.0), (2, "fp32", 76.5), (3, "bf16", 40.0)):
        made.run(
            work,
            "simcse",
            seed=seed,
            comparison=precision,
            precision=precision,
            corpus=made.WIKI,
            scores=made.sts(score),
        )
    assert float(measured(work, 'comparison = "fp32"')) == pytest.approx(76.25)
    with pytest.raises(InputError) as caught:
        measured(work)
    assert '"bf16"' in str(caught.value)


def test_a_run_that_two_comparisons_share_belongs_to_both(work: Path) -> None:
    run = simcse(work, "first", 0.2, 55.0)
    listed = ListedRun(id=run.id, row="mine", base_model=run.base_model, seed=1)
    write_comparison_file(work, ComparisonFile(name="second", runs=(listed,)))
    assert float(measured(work, 'comparison = "second"')) == pytest.approx(55)


@pytest.mark.parametrize("name", definition.names())
def test_a_shipped_definition_names_the_comparison_of_its_experiment_file(name: str) -> None:
    loaded = definition.load(name)
    assert loaded is not None
    file = Path(__file__).parents[3] / "studies" / "papers" / f"{name}.toml"
    assert loaded.comparison == read_toml(file)["name"]


def test_in_a_named_comparison_the_row_of_the_same_label_is_taken(work: Path) -> None:
    named = made.run(
        work,
        "simcse",
        {"temperature": 0.3},
        row="SimCSE",
        comparison="ablation",
        corpus=made.WIKI,
        scores=made.sts(50),
    )
    assert named.row == "SimCSE"
    (work / "comparisons" / "ablation.json").unlink()
    assert float(measured(work, 'comparison = "ablation"')) == pytest.approx(50)


def test_the_parts_of_a_comparison_are_rows_of_it_too(work: Path) -> None:
    """`harness compare FILE --only BLOCK` has a comparison of its own, "NAME--BLOCK"."""
    folder = work / "comparisons"
    listed = read_comparison_file(work, "paper")
    assert listed is not None
    (folder / "paper.json").unlink()
    part = listed.model_copy(update={"name": "paper--table-1", "only": ("table-1",)})
    write_comparison_file(work, part)
    assert measured(work, 'comparison = "paper"').startswith("76")
    assert measured(work, 'comparison = "pap"') == ""


@pytest.mark.parametrize("part", [{"version": 2}, {"numerics": 7}, {"inputs": {"vectors": "ef"}}])
def test_seeds_of_earlier_code_are_in_no_mean_of_later_ones(
    part: dict[str, Any], tmp_path: Path
) -> None:
    work = tmp_path / "work"
    for seed in (1, 2, 3):
        made.run(work, "simcse", seed=seed, corpus=made.WIKI, scores=made.sts(40.0))
    later = {"finished": "2026-01-01T00:00:00Z", "corpus": made.WIKI, **part}
    made.run(work, "simcse", seed=1, scores=made.sts(76.0), **later)
    made.run(work, "simcse", seed=2, scores=made.sts(76.5), **later)
    assert float(measured(work)) == pytest.approx(76.25)
