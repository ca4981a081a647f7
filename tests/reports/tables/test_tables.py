"""Tables of MTEB, layers, efficiency and other languages, against numbers worked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.results.comparison import ComparisonFile, ListedRun
from harness.results.facts import Facts
from harness.results.store import read_records, write_comparison_file
from harness.tasks.mteb.benchmarks import EN_V1, HUMAN, MTEB_SUITES, names_of
from reports.document.table import Cell, Table
from reports.load import read_comparison
from reports.stats.significance import Significance
from reports.suite_targets import known_targets
from reports.tables import cost, mteb, space
from reports.tables.suites import RETRIEVAL, suite_tables
from tests.support import synthetic

score = synthetic.score


@pytest.fixture
def made(tmp_path: Path):
    return synthetic.Invented(tmp_path, scale=0.01)


def bare(made, row: str, seed: int = 1, **options):
    """A run without scores."""
    return made.add(row, seed, tasks=(), geometry=False, curves=False, **options)


def of_mteb(values: dict[str, float], metric: str = "accuracy", split: str = "test"):
    return [
        score(f"mteb:{name}", "mteb", "mteb", metric, value, split=split)
        for name, value in values.items()
    ]


def cells(table: Table | None) -> dict[str, dict[str, Cell]]:
    assert table is not None
    keys = [column.key for column in table.columns]
    return {row.cells[0].text: dict(zip(keys, row.cells, strict=True)) for row in table.rows}


QUICK = dict(
    zip(
        names_of(MTEB_SUITES["mteb-quick"]),
        (0.6, 0.7, 0.3, 0.5, 0.4, 0.2, 0.8, 0.7, 0.6, 0.3),
        strict=True,
    )
)


def test_category_averages_are_over_data_sets(made):
    for seed, shift in ((1, 0.0), (2, 0.02)):
        made.extend(
            bare(made, "SimCSE", seed), of_mteb({name: v + shift for name, v in QUICK.items()})
        )
    comparison = read_comparison(made.workdir, "invented")
    assert mteb.suites_of(comparison) == ["mteb-quick"]
    row = cells(mteb.category_table(comparison, "mteb-quick"))["SimCSE"]
    # Seed 1: classification (60 + 70) / 2, STS (80 + 70 + 60) / 3, all ten sets 510 / 10; seed 2 is
    # 2 higher.
    assert row["Classification"].value == pytest.approx(66)
    assert row["STS"].value == pytest.approx(71)
    assert row["average"].value == pytest.approx(52)
    assert row["average"].sd == pytest.approx(2**0.5)
    assert row["average"].n == 2
    assert len(row["average"].records) == 2


def test_a_benchmark_of_mteb_that_the_file_names_has_its_averages(made):
    name = "mteb-benchmark:Own (two, v1)"
    kinds = {"STS": ("STS12", "STS17/all"), "Retrieval": ("NFCorpus/Own (two, v1)",)}
    values = {"STS12": 0.7, "STS17/all": 0.6, "NFCorpus/Own (two, v1)": 0.2, "Banking77": 0.9}
    for row, shift in (("SimCSE", 0.0), ("SCD", 0.1)):
        made.extend(bare(made, row), of_mteb({task: v + shift for task, v in values.items()}))
    records = read_records(made.workdir, "invented")
    listed = [ListedRun(id=r.id, row=r.row, base_model=r.base_model, seed=r.seed) for r in records]
    tasks = tuple(f"mteb:mteb:{task}" for task in values)
    file = ComparisonFile(
        name="invented", runs=tuple(listed), tasks=tasks, benchmarks={name: kinds}
    )
    write_comparison_file(made.workdir, file)
    comparison = read_comparison(made.workdir, "invented")
    assert mteb.suites_of(comparison) == [name]
    row = cells(mteb.category_table(comparison, name))["SimCSE"]
    assert row["STS"].value == pytest.approx(65)
    assert row["average"].value == pytest.approx(50)
    tables = {table.key: table.title for table in mteb.mteb_tables(comparison)}
    assert next(iter(tables.values())) == "Own (two, v1) · categories"
    assert "mteb-tasks" in tables  # Banking77, which is not of the benchmark
    assert not any(" " in key or ":" in key for key in tables)
    (target,) = [found for words, found in known_targets(comparison) if name in words]
    assert [measure.task for measure in target.measures] == [
        f"mteb:{task}" for tasks in kinds.values() for task in tasks
    ]


def test_people_have_a_line_where_their_scores_are_published(made):
    facts = {
        f"mteb:{name}": Facts(metric="accuracy", human=HUMAN[name]).plain()
        for name in ("HUMESTS12", "HUMESTS22")
    }
    made.extend(bare(made, "SimCSE"), of_mteb({"HUMESTS12": 0.7, "HUMESTS22": 0.6}), figures=facts)
    comparison = read_comparison(made.workdir, "invented")
    (table,) = mteb.mteb_tables(comparison, Significance(comparison))
    people = cells(table)["people"]
    assert people["mteb:HUMESTS12"].value == pytest.approx(91.21)
    assert people["mteb:HUMESTS22"].value == pytest.approx(78.36)


def test_an_average_that_lacks_a_set_names_it_and_has_no_value(made):
    part = {name: v for name, v in QUICK.items() if name != "STS17"}
    made.extend(
        bare(made, "SimCSE"), of_mteb(part), missing={"mteb:STS17": "the hub cannot be reached"}
    )
    made.extend(bare(made, "SCD"), of_mteb(QUICK))
    comparison = read_comparison(made.workdir, "invented")
    rows = cells(mteb.category_table(comparison, "mteb-quick"))
    for key in ("STS", "average"):
        assert rows["SimCSE"][key].state == "missing"
        assert rows["SimCSE"][key].value is None
        assert "STS17" in rows["SimCSE"][key].notes[0]
    assert rows["SimCSE"]["Classification"].value == pytest.approx(65)
    assert rows["SCD"]["average"].value == pytest.approx(51)
    (table,) = [
        t for t in mteb.dataset_tables(comparison, "mteb-quick") if t.key == "mteb-quick-STS"
    ]
    sets = cells(table)
    assert sets["SimCSE"]["mteb:STS17"].notes == ("the hub cannot be reached",)
    assert sets["SimCSE"]["mteb:BIOSSES"].text == "80.00"
    assert sets["SCD"]["mteb:STS17"].text == "70.00"


def test_version_1_prints_summeval_with_its_defect_and_pairs_by_cosine(made):
    values = {name: 0.5 for name in names_of(EN_V1) if name not in ("SummEval", "MSMARCO")}
    scores = [
        *of_mteb(values, "main"),
        *of_mteb({"SummEval": 0.3}, "summeval_v1"),
        *of_mteb({"SummEval": 0.1}, "cosine_spearman"),
        *of_mteb({"MSMARCO": 0.2}, "ndcg_at_10", split="dev"),
        *of_mteb(dict.fromkeys(EN_V1["PairClassification"], 0.4), "cosine_ap"),
    ]
    made.extend(bare(made, "SimCSE"), scores)
    comparison = read_comparison(made.workdir, "invented")
    assert mteb.suites_of(comparison) == ["mteb-en-v1"]
    table = mteb.category_table(comparison, "mteb-en-v1")
    row = cells(table)["SimCSE"]
    assert row["Summarization"].text == "30.00"
    assert row["PairClassification"].text == "40.00"  # not the main score's 50
    assert row["Retrieval"].value == pytest.approx(
        (14 * 50 + 20) / 15
    )  # MS MARCO is scored on its dev split
    assert row["average"].value == pytest.approx((51 * 50 + 3 * 40 + 30 + 20) / 56)
    tables = {t.key: t for t in mteb.mteb_tables(comparison)}
    assert list(tables) == [
        "mteb-en-v1-categories",
        *(f"mteb-en-v1-{category}" for category in EN_V1),
    ]
    assert cells(tables["mteb-en-v1-Summarization"])["SimCSE"]["summeval-corrected"].text == "10.00"


def test_tasks_asked_for_by_name_get_no_average(made):
    made.extend(bare(made, "SimCSE"), of_mteb({"SciFact": 0.4, "STS17/es-es": 0.5}))
    made.extend(bare(made, "SCD"), of_mteb({"SciFact": 0.3}))
    comparison = read_comparison(made.workdir, "invented")
    assert mteb.suites_of(comparison) == []
    (table,) = mteb.mteb_tables(comparison)
    rows = cells(table)
    assert set(rows["SimCSE"]) == {
        "row",
        "supervision",
        "seeds",
        "mteb:SciFact",
        "mteb:STS17/es-es",
    }
    assert (rows["SimCSE"]["mteb:SciFact"].text, rows["SimCSE"]["mteb:SciFact"].rank) == (
        "40.00",
        1,
    )
    assert rows["SCD"]["mteb:STS17/es-es"].state == "missing"


def test_without_mteb_there_is_no_table(made):
    bare(made, "SimCSE")
    comparison = read_comparison(made.workdir, "invented")
    assert list(mteb.mteb_tables(comparison)) == []
    assert cost.efficiency_tables(comparison) == []
    assert list(suite_tables(comparison, suites=("multilingual", *RETRIEVAL))) == []


def test_embedded_retrieval_and_clustering_stand_under_their_metrics(made):
    made.extend(
        bare(made, "SimCSE"),
        [
            score(
                "Embedded-Retrieval-natural", "embedded-mteb", "embedded", "ndcg_at_10", 0.81, n=80
            ),
            score(
                "Embedded-Retrieval-contrast",
                "embedded-mteb",
                "embedded",
                "ndcg_at_10",
                0.15,
                n=120,
            ),
            score(
                "Embedded-Clustering",
                "embedded-mteb",
                "embedded",
                "v_measure",
                0.2,
                aggregation="mean of 3 subsets",
            ),
        ],
    )
    (table,) = suite_tables(read_comparison(made.workdir, "invented"), suites=RETRIEVAL)
    row = cells(table)["SimCSE"]
    assert [
        row[f"Embedded-{name}"].text
        for name in ("Retrieval-natural", "Retrieval-contrast", "Clustering")
    ] == [
        "81.00",
        "15.00",
        "20.00",
    ]
    assert table.head_groups()[-2:] == [("Retrieval", 2), ("", 1)]
    assert [c.sub for c in table.columns[4:]] == ["ndcg at 10 · 120 texts", "v measure · 100 texts"]
    assert "average" not in row


def layer_scores(values: dict[tuple[int, str], float], pairs: str = "STS-B"):
    return [
        score(
            f"{pairs}@layer:{k}:{pooling}",
            "layers",
            "senteval",
            "spearman",
            value,
            aggregation="all",
            n=1379,
        )
        for (k, pooling), value in values.items()
    ]


def test_best_layer_and_pooling_of_a_row(made):
    values = {
        (0, "cls"): 0.1,
        (1, "cls"): 0.3,
        (2, "cls"): 0.2,
        (0, "mean"): 0.5,
        (1, "mean"): 0.7,
        (2, "mean"): 0.6,
    }
    for seed, shift in ((1, 0.0), (2, 0.04)):
        made.extend(
            bare(made, "SimCSE", seed), layer_scores({key: v + shift for key, v in values.items()})
        )
    ((row, ends),) = space.extremes(read_comparison(made.workdir, "invented"), "STS-B", "senteval")
    assert row.label == "SimCSE"
    # The constant [CLS] before the first layer is left out: five places, and its 0.1 is not the
    # worst.
    assert [text for text, _ in ends] == [
        "best of 5: mean of layer 1",
        "worst of 5: [CLS] of layer 2",
    ]
    assert [cell.value for _, cell in ends] == pytest.approx(
        [72, 22]
    )  # (70 + 74) / 2, (20 + 24) / 2
    assert ends[0][1].sd == pytest.approx(8**0.5)


def timed(encode: float, train: float | None = None, device: str = "cpu", precision: str = "fp32"):
    """Scores and protocols as the efficiency task leaves them; 1,000 sentences."""
    about = {"phase": "encoding", "batch_size": 64, "repeats": 3}
    inference = {**about, "device": device, "threads": 2, "precision": "fp32"}
    values = [("encode_seconds", encode, 1000), ("sentences_per_second", 1000 / encode, 1000)]
    values += [("train_seconds", train, 5000)] if train is not None else []
    scores = [
        score(
            "efficiency:STS-B",
            "efficiency",
            "senteval",
            metric,
            value,
            n=n,
            comparable=f"{metric}{device}",
        )
        for metric, value, n in values
    ]
    training = {
        "phase": "training",
        "batch_size": 128,
        "steps": 1250,
        "device": device,
        "precision": precision,
    }
    described = {
        s.comparable: training if s.metric == "train_seconds" else inference for s in scores
    }
    return scores, described


def test_training_and_inference_are_apart(made):
    for seed, (encode, train) in enumerate(((2.0, 60.0), (4.0, 80.0)), 1):
        scores, described = timed(encode, train, precision="bf16")
        made.extend(bare(made, "SimCSE", seed), scores, protocols=described)
    scores, described = timed(2.0)
    made.extend(bare(made, "mean", supervision="untrained"), scores, protocols=described)
    (table,) = cost.efficiency_tables(read_comparison(made.workdir, "invented"))
    rows = cells(table)
    row = rows["SimCSE"]
    assert (row["train_seconds"].text, row["train_seconds"].spread) == ("70.0", "± 14.1")
    assert row["encode_seconds"].value == pytest.approx(3)
    assert row["sentences_per_second"].value == pytest.approx(375)  # (500 + 250) / 2
    assert rows["mean"]["encode_seconds"].text == "2.00"
    assert dict(table.head_groups())["Inference"] == 2


def test_times_on_unlike_devices_are_marked(made):
    for label, device in (("a", "cpu"), ("b", "cpu"), ("c", "NVIDIA X")):
        scores, described = timed(2.0, device=device)
        made.extend(bare(made, label, supervision="untrained"), scores, protocols=described)
    (table,) = cost.efficiency_tables(read_comparison(made.workdir, "invented"))
    rows = cells(table)
    assert "not comparable" in rows["c"]["encode_seconds"].notes[0]
    assert rows["a"]["encode_seconds"].notes == ()


def test_languages(made):
    for seed in (1, 2):
        made.extend(
            bare(made, "SimCSE", seed),
            [
                score(
                    f"STS-B-{code}",
                    "multilingual",
                    "stsb-multi-mt",
                    "spearman",
                    value,
                    aggregation="all",
                    n=1379,
                )
                for code, value in (("de", 0.5 + seed / 10), ("en", 0.8))
            ],
            missing={"STS-B-zh": "the hub cannot be reached"},
        )
    (table,) = suite_tables(read_comparison(made.workdir, "invented"), suites=("multilingual",))
    row = cells(table)["SimCSE"]
    assert row["STS-B-de"].value == pytest.approx(65)
    assert row["STS-B-en"].text == "80.00"
    assert row["STS-B-zh"].state == "missing"
    assert [c.title for c in table.columns[3:]] == ["German", "English", "Chinese"]
    assert table.columns[3].sub == "spearman · 1,379 pairs"
