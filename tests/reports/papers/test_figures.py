"""The papers' figures: ablations and scans of hyperparameters, computed by hand here, never over
unlike settings.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reports.document.blocks import Figure
from reports.papers import definition
from reports.papers.figures import alignment_uniformity
from reports.papers.option_figures import ablation, scan
from reports.papers.paper_results import PaperResults
from reports.papers.paper_tables import paper_table
from tests.support import invented_runs as made
from tests.support.invented_runs import read_papers_library as read_library

USUAL = {"objective": "both", "anchors": 2, "positives": 2, "temperature": 0.05, "strategy": "both"}


def runs(workdir: Path, *rows: tuple[dict, float, int, int]) -> PaperResults:
    """(what differs from the usual configuration, score, documents, updates) of each run."""
    for config, value, documents, steps in rows:
        made.run(
            workdir,
            "declutr",
            USUAL | config,
            base="embedded:mini-bert",
            training={"planned_steps": steps},
            corpus={
                "uri": "documents",
                "kind": "documents",
                "count": documents,
                "sha256": f"{documents:064x}",
            },
            scores=made.sts(value, aggregation="mean")[:5] + made.sts(value)[5:],
        )
    return PaperResults(definition.load("declutr"), read_library(workdir))


def drawn(key: str, paper: PaperResults) -> Figure | None:
    """One of the paper's figures, as its definition asks for it."""
    figure = next(figure for figure in paper.definition.figures if figure.key == key)
    return (scan if figure.kind == "scan" else ablation)(paper, figure)


def test_runs_of_another_length_are_no_dots_of_the_sampling_figure(tmp_path):
    paper = runs(
        tmp_path,
        ({}, 47, 900, 50),
        ({"anchors": 1}, 48, 900, 50),
        ({"positives": 1}, 46, 900, 50),
        ({}, 60, 900, 100),
    )
    figure = drawn("figure-2", paper)
    assert "Anchors: 1: 48.00, 2: 46.50" in figure.alt
    assert "Positives: 1: 46.00, 2: 47.50" in figure.alt


def test_objectives_by_the_amount_of_text_each_with_its_usual_length(tmp_path):
    paper = runs(
        tmp_path,
        ({}, 47, 900, 100),
        ({"objective": "mlm"}, 46, 900, 100),
        ({"objective": "contrastive"}, 45, 900, 100),
        ({}, 60, 900, 50),
        ({}, 44, 300, 30),
    )
    alt = drawn("figure-3", paper).alt
    assert "both: 300 (30 steps): 44.00, 900 (100 steps): 47.00" in alt
    assert "contrastive: 900 (100 steps): 45.00" in alt
    assert "60.00" not in alt


def test_heads_and_memories_next_to_neither(tmp_path):
    paper = runs(
        tmp_path,
        ({}, 47, 900, 80),
        ({"projection": 128, "projection_activation": "linear"}, 47.1, 900, 80),
        ({"projection": 128, "projection_activation": "relu"}, 46, 900, 80),
        ({"memory": 512}, 45, 900, 80),
        ({"memory": 512, "temperature": 0.5}, 20, 900, 80),  # samples unlike the others
        ({}, 60, 900, 50),
        ({"anchors": 1}, 61, 900, 50),
        ({"positives": 1}, 62, 900, 50),
        ({"strategy": "adjacent"}, 63, 900, 50),
        ({"temperature": 0.1}, 64, 900, 50),
    )
    figure = drawn("figure-s1", paper)
    assert (
        "Projection: none: 47.00, 128 linear: 47.10, 128 relu: 46.00; Memory: none: 47.00, 512: 45.00"
        in figure.alt
    )
    assert drawn("figure-s1", runs(tmp_path / "other", ({}, 47, 900, 80))) is None


def test_the_score_is_one_that_most_rows_have(tmp_path):
    runs(tmp_path, ({}, 47, 900, 50))
    for anchors in (1, 4):
        made.run(
            tmp_path,
            "declutr",
            USUAL | {"anchors": anchors},
            base="embedded:mini-bert",
            training={"planned_steps": 50},
            scores=[made.score("STS-B", 40 + anchors)],
            corpus={"uri": "documents", "kind": "documents", "count": 900, "sha256": f"{900:064x}"},
        )
    figure = drawn("figure-2", PaperResults(definition.load("declutr"), read_library(tmp_path)))
    assert figure.caption.startswith("STS-B test")
    assert "Anchors: 1: 41.00, 2: 47.00, 4: 44.00" in figure.alt


def test_options_without_a_value_and_with_several_are_levels_too(tmp_path):
    """A definition may name any option as a factor: None and lists have no order with numbers."""
    for values, score in (((None, []), 40.0), ((8, [8, 4]), 42.0), ((16, [8, 8]), 45.0)):
        made.run(
            tmp_path,
            "declutr",
            USUAL | {"window": values[0], "projector": values[1]},
            base="embedded:mini-bert",
            scores=made.sts(score, aggregation="mean")[:5] + made.sts(score)[5:],
        )
    paper = PaperResults(definition.load("declutr"), read_library(tmp_path))
    known = next(one for one in paper.definition.figures if one.key == "figure-2")
    factors = {"window": "window", "projector": "projector"}
    figure = ablation(paper, known.model_copy(update={"factors": factors, "same": []}))
    assert "Window: 8: 42.00, 16: 45.00, none: 40.00" in figure.alt
    assert "Projector: 8 x 4: 42.00, 8 x 8: 45.00, none: 40.00" in figure.alt


LAMBDAS = (5e-4, 1e-3, 2.5e-3, 5e-3, 7.5e-3, 1e-2, 2.5e-2)
STS_B = {"task": "STS-B", "source": "senteval", "sha256": "aa"}
SMALL = {"task": "Embedded-STS-natural", "source": "embedded", "sha256": "bb"}
FEW = {"uri": "embedded:sentences", "kind": "sentences", "count": 2100, "sha256": "cd" * 32}


def study(
    workdir: Path,
    name: str,
    method: str,
    trials: list,
    dev: dict,
    corpus: dict,
    *,
    steps: int = 100,
) -> list[tuple[float, str, str]]:
    stored = []
    for config, value in trials:
        one = made.run(
            workdir,
            method,
            config,
            corpus=corpus,
            dev=dev,
            base="embedded:mini-bert",
            comparison=name,
            training={"planned_steps": steps},
        )
        stored.append((value, "COMPLETE", one.id))
    made.store_study(workdir, name, stored)
    return stored


def bt(strength: float, weight: float, rate: float) -> dict:
    return {
        "view": "shuffle",
        "shuffle": strength,
        "off_diagonal_weight": weight,
        "learning_rate": rate,
    }


@pytest.fixture(scope="module")
def paper(tmp_path_factory) -> PaperResults:
    work = tmp_path_factory.mktemp("work")
    scores = {1e-3: (0.50, 0.52, 0.60), 1e-2: (0.40, 0.44, 0.42)}
    trials = [(bt(0.1, w, i), v) for w, values in scores.items() for i, v in enumerate(values)]
    trials.append((bt(0.3, 0.0, 1), 0.99))  # no place on a log scale
    study(work, "large", "barlow_twins", trials, STS_B, made.WIKI)
    many = [(bt(0.1, 10.0**-i, rate), 0.9) for i in range(1, 5) for rate in range(5)]
    study(work, "small", "barlow_twins", many, SMALL, FEW)
    grid = [
        (
            {"view": "dropout", "dropout": 0.1, "covariance_weight": c, "variance_weight": v},
            0.3 + 0.1 * i + 0.01 * k,
        )
        for i, c in enumerate((1e-3, 1e-2, 1e-1))
        for k, v in enumerate((10.0, 1e4))
    ]
    study(work, "vicreg", "vicreg", grid, STS_B, made.WIKI)
    return PaperResults(definition.load("noncontrastive"), read_library(work))


def test_trials_of_unlike_dev_sets_and_texts_are_never_one_statistic(paper):
    table = paper_table(paper, next(t for t in paper.definition.tables if t.key == "table-1"))[0]
    ours = [
        (row.block, *(cell.text for cell in row.cells))
        for row in table.rows
        if "measured here" in row.block
    ]
    large, small = (
        "mini-bert · STS-B dev, 1,000,000 sentences, 100 training steps",
        "mini-bert · Embedded-STS-natural dev, 2,100 sentences, 100 training steps",
    )
    assert (
        f"{large} · measured here",
        "Barlow Twins, shuffle 0.1",
        "6 runs",
        "60.0",
        "51.5",
        "47.0",
    ) in ours
    assert (
        f"{small} · measured here",
        "Barlow Twins, shuffle 0.1",
        "20 runs",
        "90.0",
        "90.0",
        "90.0",
    ) in ours
    entry = next(
        j
        for j in paper.numbers
        if j.published["model"] == "Barlow Twins | shuffle p=0.1" and j.measured.by_seed
    )
    assert len(entry.measured.records) == 6  # STS-B dev before the larger study on another set
    assert entry.measured.values[0] == pytest.approx(60)


def test_maximum_and_upper_quartile_by_the_weight(paper):
    figure = drawn("scan-barlow-twins", paper)
    upper = {w: np.quantile(v, 0.75) for w, v in ((1e-3, (50, 52, 60)), (1e-2, (40, 42, 44)))}
    assert (
        f"0.001: 60.00 and {upper[1e-3]:.2f} of 3, 0.01: 44.00 and {upper[1e-2]:.2f} of 3"
        in figure.alt
    )
    assert (
        "6 trials from mini-bert, STS-B dev, 1,000,000 sentences, 100 training steps (studies: large)"
        in figure.caption
    )
    assert "small" not in figure.caption


def test_both_weights_of_vicreg(paper):
    figure = drawn("scan-vicreg", paper)
    for said in ("0.001: 31.00", "0.01: 41.00", "0.1: 51.00", "10: 50.00", "1e+04: 51.00"):
        assert said in figure.alt
    assert "6 trials" in figure.caption
    for value in ("30.0", "31.0", "40.0", "51.0"):  # cells of the best trial, as text of the SVG
        assert f">{value}<" in figure.svg


def block(paper: PaperResults) -> list[tuple[str, ...]]:
    table = paper_table(paper, next(t for t in paper.definition.tables if t.key == "table-1"))[0]
    ours = [
        row for row in table.rows if "measured here" in row.block and row.cells[2].state == "value"
    ]
    return [(row.block, *(c.text for c in row.cells)) for row in ours]


def test_unlike_numbers_of_updates_are_never_one_statistic(tmp_path):
    for name, steps, value in (("short", 20, 0.3), ("long", 2000, 0.8)):
        study(
            tmp_path,
            name,
            "barlow_twins",
            [(bt(0.1, w, 1), value) for w in LAMBDAS],
            STS_B,
            made.WIKI,
            steps=steps,
        )
    rows = block(PaperResults(definition.load("noncontrastive"), read_library(tmp_path)))
    assert sorted(row[2:4] for row in rows) == [("7 runs", "30.0"), ("7 runs", "80.0")]
    assert len({row[0] for row in rows}) == 2


def test_texts_of_equal_size_are_told_apart(tmp_path):
    for name, digest in (("one", "ab"), ("other", "cd")):
        text = {**made.WIKI, "sha256": digest * 32, "uri": f"{name}.txt"}
        study(tmp_path, name, "barlow_twins", [(bt(0.1, 0.1, 1), 0.5)], STS_B, text)
    blocks = {
        row[0]
        for row in block(PaperResults(definition.load("noncontrastive"), read_library(tmp_path)))
    }
    assert len(blocks) == 2
    assert all("one.txt" in name or "other.txt" in name for name in blocks)


def test_a_run_of_two_studies_counts_once(tmp_path):
    stored = study(
        tmp_path,
        "x",
        "barlow_twins",
        [(bt(0.1, 0.1, 1), 0.9), (bt(0.1, 0.2, 1), 0.1)],
        STS_B,
        made.WIKI,
    )
    made.store_study(tmp_path, "y", stored[:1])
    assert [
        row[2:]
        for row in block(PaperResults(definition.load("noncontrastive"), read_library(tmp_path)))
    ] == [("2 runs", "90.0", "70.0", "50.0")]


def test_the_papers_grid_is_shown_value_by_value_and_a_continuous_range_by_fifths(tmp_path):
    study(
        tmp_path,
        "grid",
        "barlow_twins",
        [(bt(0.1, w, 1), 0.5 + w) for w in LAMBDAS],
        STS_B,
        made.WIKI,
    )
    free = [
        (
            {
                "view": "dropout",
                "dropout": 0.1,
                "covariance_weight": 1e-3 * 1.3**i,
                "variance_weight": 10 * 1.3**i,
            },
            0.5,
        )
        for i in range(12)
    ]
    study(tmp_path, "free", "vicreg", free, STS_B, made.WIKI)
    paper = PaperResults(definition.load("noncontrastive"), read_library(tmp_path))
    figure = drawn("scan-barlow-twins", paper)
    for weight in LAMBDAS:
        assert (
            f"{weight:.2g}: {50 + 100 * weight:.2f} and {50 + 100 * weight:.2f} of 1" in figure.alt
        )
    assert "of each value, whatever" in figure.caption
    assert "fifth of the range" in drawn("scan-vicreg", paper).caption


def test_the_comparable_setting_is_compared_whichever_is_larger(tmp_path):
    mine = {"uri": "mine.txt", "kind": "sentences", "count": 100, "sha256": "ee" * 32}
    for name, text, values in (("paper", made.WIKI, (0.7, 0.75)), ("more", mine, (0.5, 0.5, 0.6))):
        study(
            tmp_path,
            name,
            "barlow_twins",
            [(bt(0.1, i + 1, 1), v) for i, v in enumerate(values)],
            STS_B,
            text,
        )
    measured = [
        j
        for j in PaperResults(definition.load("noncontrastive"), read_library(tmp_path)).numbers
        if j.measured.by_seed
    ]
    assert {len(j.measured.records) for j in measured} == {2}


def test_trials_of_one_scaling_of_the_weights(tmp_path):
    for name, scaling, count in (("code", "code", 3), ("paper", "paper", 2)):
        rows = [
            (
                {
                    "view": "dropout",
                    "dropout": 0.1,
                    "covariance_weight": 10.0**i,
                    "variance_weight": 10.0**i,
                    "scaling": scaling,
                },
                0.5,
            )
            for i in range(count)
        ]
        study(tmp_path, name, "vicreg", rows, STS_B, made.WIKI)
    caption = drawn(
        "scan-vicreg", PaperResults(definition.load("noncontrastive"), read_library(tmp_path))
    ).caption
    assert "3 trials" in caption
    assert "scaling: code." in caption


def test_alignment_and_uniformity_of_rows_and_published_points(tmp_path):
    rest = {"aggregation": "", "suite": "geometry", "split": "all", "scale": 1}
    for view, strengths in {
        "shuffle": (0.05, 0.1, 0.2, 0.3, 0.5),
        "dropout": (0.05, 0.1, 0.2),
        "eda": (0.1, 0.2),
    }.items():
        for strength in strengths:
            scores = [
                made.score("geometry:STS-B", strength, "alignment", **rest),
                made.score("geometry:STS-B", -1 - strength, "uniformity", **rest),
            ]
            made.run(
                tmp_path,
                "vicreg",
                {"view": view, view: strength},
                base="embedded:mini-bert",
                row=f"{view} {strength}",
                scores=scores,
            )
    made.run(tmp_path, "pooling", {"pooling": "mean"}, base="embedded:mini-bert", scores=scores)
    figure = alignment_uniformity(
        PaperResults(definition.load("noncontrastive"), read_library(tmp_path))
    )
    assert "shuffle 0.5 (measured here): uniformity -1.50, alignment 0.50" in figure.alt
    assert "(published): " in figure.alt
    assert "Not named" in figure.caption  # a crowd of dots
    few = alignment_uniformity(PaperResults(definition.load("scd"), read_library(tmp_path)))
    assert "Not named" not in few.caption
