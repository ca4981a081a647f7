"""One experiment file a paper: their rows and runs are those of the papers' tables, from public
models and text.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from typing import Any

import pytest

from harness import registry
from harness.runs.experiment import read_experiment
from harness.runs.rows import Row, resolve_rows
from harness.runs.selection import select_part
from methods.barlow_twins import BarlowTwins
from reports.papers import definition
from studies import PAPERS
from studies.definition.space import make_space, plan_trials
from studies.definition.study import presets, read_study
from tests.support.configurations import know_base_models

FILES = ("scd", "noncontrastive", "declutr", "self-guided", "cropping", "simcse")
# Runs of each part, counted by hand from the papers' tables: rows x base models x seeds, one for
# what has no seed.
RUNS = {
    "scd": {"table-1": 35, "table-2": 19, "table-3": 10, "figure-2-data": 17},
    "noncontrastive": {
        "table-1": 2 * (3 + 2 + 5) * 2,
        "table-2": 14,
        "table-4": 7,
        "pairs": 8,
        "figure-3": 2,
        "readings": 2 * 2 * 5,
    },
    "declutr": {
        "table-1": 10,
        "table-s1": 8,
        "table-s3": 8,
        "table-s4": 8,
        "table-s5": 8,
        "table-s6": 4,
        "figure-2": 2 * 2 * 3 * 2 * 2
        + 2 * 3 * 2,  # A x P x strategy x temperature x base model, and P = 4 on one
        "figure-3": 3 * 4 * 2,
        "figure-s1": 4 * 2 + 4 * 4,
    },
    "cropping": {"mteb": 2 + 6 * 3},
    "simcse": {
        # untrained, others' weights and whitening once; flow, IS-BERT, CT and SimCSE with seeds
        "table-5": 1 + 2 + 2 + 2 + 3 + 3 * (2 + 3) + 2 * 3 * 3,
        "released": 8,
        "table-c1": 3 + 3 + 2 + 1,
        "table-b3": 1 + 3 + 3 + 2 + 1 + 3,
        "table-e1": 1 + 2 + 1 + 3 + 3 * 2 * 3,
        "table-1": 3 * (1 + 3 + 3 + 2 + 1 + 1),
        "table-3": 3 * (1 + 6 + 1),
        "table-6": 3 * 8,
        "table-7": 3 * 4,
        "table-d1": 3 * 6,
        "next-sentence": 3 * 5,
        "batch-rate": 3 * 4 * 3,
        "mlm-weight": 3 * 3,
        "course": 3 * 4 * 2,
    },
    "self-guided": {
        "sts": 6 * 3 + 5 * 6 * 8,
        "ablation": 8 * 8,
        "efficiency": 2 + 2 * 8,
        "transfer": 3 + 2 * 8,
        "layers": 3,
        "multilingual": 2 + 8,
        "domain": 4 * 8,
    },
}
UNMEASURED = {
    "noncontrastive": {"table-3"},
    "cropping": {"knn", "rates", "course"},
}  # tables for which no run is made


@pytest.fixture(autouse=True)
def bases(monkeypatch: pytest.MonkeyPatch) -> None:
    know_base_models(monkeypatch)


def rows_of(file: str) -> list[Row]:
    return resolve_rows(read_experiment(file), file)


def runs_by_part(file: str) -> dict[str, set[tuple[str, str, int]]]:
    """Part -> its runs: row, what it starts from, seed."""
    parts: dict[str, set[tuple[str, str, int]]] = defaultdict(set)
    for row in rows_of(file):
        seeds = list(row.seeds.items())
        for seed, blocks in seeds[:1] if row.method.card.deterministic else seeds:
            for block in blocks:
                parts[block].add((row.label, row.start_model, seed))
    return parts


@pytest.mark.parametrize("file", FILES)
def test_a_paper_s_parts_have_the_runs_of_its_tables(file: str) -> None:
    assert {part: len(runs) for part, runs in runs_by_part(file).items()} == RUNS[file]
    experiment = read_experiment(file)
    assert experiment.reports == [file]
    assert (
        experiment.name == f"paper-{file}"
    )  # beside the page of the paper's report, which is called as the file
    tables = {table.key for table in definition.load(file).tables}
    assert tables - set(experiment.blocks) == UNMEASURED.get(file, set())


@pytest.mark.parametrize("file", FILES)
def test_a_part_is_asked_for_by_its_name_and_by_rows(file: str) -> None:
    experiment = read_experiment(file)
    for block in experiment.blocks:
        part = select_part(experiment, [block])
        assert list(part.blocks) == [block]
        assert part.methods


@pytest.mark.parametrize("file", FILES)
def test_a_paper_s_file_names_public_models_and_text_only(file: str) -> None:
    from harness.sources.corpus.catalogue import CATALOGUE

    experiment = read_experiment(file)
    yours = {
        "stsb-back-translations.tsv",
        "iclr24v2.parquet",
    }  # nobody published one; of its authors' repository
    texts = {row.corpus.uri for row in rows_of(file) if row.corpus is not None} - yours
    assert {text.partition("?")[0] for text in texts} <= set(CATALOGUE)
    public = (
        "google-bert/",
        "FacebookAI/",
        "distilbert/",
        "albert/",
        "microsoft/",
        "sentence-transformers/",
    )
    assert all(row.base_model.startswith(public) for row in rows_of(file))
    assert "mini" not in str(experiment.base_models)
    assert all(
        word not in (PAPERS / f"{file}.toml").read_text() for word in ("local/", "http", "/work")
    )


@pytest.mark.parametrize("file", FILES)
def test_rows_name_presets_and_no_alias_of_one_family(file: str) -> None:
    """A rehearsal resolves the same rows from the embedded model, for which "paper-roberta" would
    be refused.
    """
    for entry in read_experiment(file).methods:
        method: Any = registry.load(registry.METHODS, entry.method)
        assert entry.preset is None or entry.preset in method.presets
    small = read_experiment(file, ['base_models=["embedded:mini-bert"]'])
    assert {row.base_model for row in resolve_rows(small, file)} == {"embedded:mini-bert"}


def test_scd_s_ablation_differs_in_its_terms_alone() -> None:
    rows = [row for row in rows_of("scd") if row.method.name == "scd" and "table-3" in row.seeds[1]]
    terms = [row.config.model_dump()["terms"] for row in rows]
    assert terms == ["both", "self_contrast", "decorrelation"]
    assert len({str({**row.config.model_dump(), "terms": ""}) for row in rows}) == 1


def test_roberta_has_the_recipe_that_the_paper_states_for_it() -> None:
    scd = {row.base_model: row.config.model_dump() for row in rows_of("scd") if row.label == "SCD"}
    stated = ("decorrelation_weight", "off_diagonal_weight", "dropout_a", "dropout_b")
    assert [scd["google-bert/bert-base-uncased"][key] for key in stated] == [
        0.005,
        0.013,
        0.05,
        0.15,
    ]
    assert [scd["FacebookAI/roberta-base"][key] for key in stated] == [0.0033, 0.028, 0.065, 0.24]


def test_every_augmentation_of_table_1_is_a_row_from_both_base_models() -> None:
    rates = {"dropout": [0.05, 0.1, 0.2], "shuffle": [0.05, 0.1, 0.2, 0.3, 0.5], "eda": [0.1, 0.2]}
    found = set()
    for row in rows_of("noncontrastive"):
        if "table-1" in row.seeds[1]:
            config: Any = row.config
            found.add((row.method.name, row.base_model, config.view, getattr(config, config.view)))
    bases = read_experiment("noncontrastive").base_models
    assert found == {
        (m, base, view, rate)
        for m in (BarlowTwins.name, "vicreg")
        for base in bases
        for view in rates
        for rate in rates[view]
    }


@pytest.mark.parametrize(
    ("base", "ending"),
    [("google-bert/bert-base-uncased", ""), ("FacebookAI/roberta-base", "-roberta")],
)
def test_the_non_contrastive_searches_have_210_and_450_runs_a_base_model(
    base: str, ending: str
) -> None:
    counts = {}
    for method in ("barlow-twins", "vicreg"):
        studies = [read_study(f"{method}-{view}{ending}") for view in ("dropout", "shuffle", "eda")]
        assert {study.base_model for study in studies} == {base}
        counts[method] = sum(
            len(plan_trials(study, make_space(study, study.name))) for study in studies
        )
    assert counts == {"barlow-twins": 210, "vicreg": 450}


@pytest.mark.parametrize("name", [name for name in presets() if name.startswith("scd-")])
def test_scd_s_searches_drop_less_in_the_first_view(name: str) -> None:
    study = read_study(name)
    trials = plan_trials(study, make_space(study, name))
    assert trials
    assert all(trial["dropout_a"] < trial["dropout_b"] for trial in trials)


def test_the_rates_of_a_study_preset_are_of_the_file_s_base_model() -> None:
    """The search from RoBERTa-base goes on from RoBERTa's recipe, not from BERT's."""
    fixed = {
        name: make_space(read_study(name), name).fixed for name in ("scd-fine", "scd-fine-roberta")
    }
    assert fixed["scd-fine"]["dropout_b"] == 0.15
    assert fixed["scd-fine-roberta"]["dropout_b"] == 0.24


def test_titles_and_descriptions_stand_in_every_file() -> None:
    for file in FILES:
        tree = tomllib.loads((PAPERS / f"{file}.toml").read_text())
        assert tree["title"]
        assert tree["description"]
        assert all(block["title"] for block in tree["blocks"].values())


@pytest.mark.parametrize("file", FILES)
def test_the_page_on_papers_says_how_many_rows_and_runs_there_are(file: str) -> None:
    page = (PAPERS.parents[1] / "docs" / "tutorials" / "paper.md").read_text()
    different = set()
    for row in rows_of(file):
        seeds = list(row.seeds)[:1] if row.method.card.deterministic else list(row.seeds)
        text = row.corpus and row.corpus.model_dump_json()
        start = row.start_model
        different |= {
            (row.method.name, start, row.config.model_dump_json(), text, seed) for seed in seeds
        }
    rows = len(read_experiment(file).methods)
    assert f"| `harness compare {file}` |" in page
    assert f"| {rows} rows, {len(different)} runs: " in page


def test_second_readings_differ_in_one_option_from_rows_of_the_other_tables() -> None:
    rows = rows_of("noncontrastive")
    firsts = [row for row in rows if "readings" not in row.blocks]
    seen = set()
    for reading in (row for row in rows if "readings" in row.blocks):
        config = reading.config.model_dump()
        unlike = []
        for first in firsts:
            same_start = first.base_model == reading.base_model and first.corpus == reading.corpus
            if first.method is reading.method and same_start:
                values = first.config.model_dump()
                unlike.append({key for key in config if config[key] != values.get(key)})
        (option,) = min(unlike, key=len)
        seen.add((reading.method.name, config["view"], option))
    dropout = {("shuffle", "native_dropout"), ("eda", "native_dropout")}
    wanted = {*dropout, ("paraphrase", "native_dropout"), ("eda", "eda_operations")}
    assert seen == {(m, *reading) for m in ("barlow_twins", "vicreg") for reading in wanted}


def test_self_guided_s_multilingual_block_has_the_sets_of_2017_in_three_languages() -> None:
    suites = read_experiment("self-guided").blocks["multilingual"].suites
    assert suites is not None
    for pair in ("en-en", "es-es", "ar-ar"):
        assert f"mteb:STS17/{pair}" in suites


def test_the_points_cls_of_figure_3_are_measured_on_both_base_models() -> None:
    rows = [row for row in rows_of("noncontrastive") if "figure-3" in row.blocks]
    pooled = {(row.base_model, row.config.pooling) for row in rows}
    assert pooled == {
        ("google-bert/bert-base-uncased", "cls"),
        ("FacebookAI/roberta-base", "cls"),
    }
