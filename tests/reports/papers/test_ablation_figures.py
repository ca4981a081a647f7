"""DeCLUTR's figures: only runs of one budget stand beside each other."""

from __future__ import annotations

from pathlib import Path

from reports.document.blocks import Figure
from reports.papers import definition
from reports.papers.ablation_figures import additions, amounts, levels
from reports.papers.matching import Matching
from reports.read.run_library import read_library
from tests.support import invented_runs as made

USUAL = {"objective": "both", "anchors": 2, "positives": 2, "temperature": 0.05, "strategy": "both"}


def runs(workdir: Path, *rows: tuple[dict, float, int, int]) -> Matching:
    """(what differs from the usual configuration, score, documents, updates) of each run."""
    for config, value, documents, steps in rows:
        made.run(
            workdir, "declutr", USUAL | config, base="embedded:mini-bert", training={"planned_steps": steps},
            corpus={"uri": "documents", "kind": "documents", "count": documents, "sha256": f"{documents:064x}"},
            scores=made.sts(value, aggregation="mean")[:5] + made.sts(value)[5:],
        )  # fmt: skip
    return Matching(definition.load("declutr"), read_library(workdir))


def drawn(key: str, matching: Matching) -> Figure | None:
    """One of the paper's figures, as its definition asks for it."""
    figure = next(figure for figure in matching.definition.figures if figure.key == key)
    return {"levels": levels, "amounts": amounts, "additions": additions}[figure.kind](matching, figure)


def test_runs_of_another_length_are_no_dots_of_the_sampling_figure(tmp_path):
    matching = runs(
        tmp_path,
        ({}, 47, 900, 50), ({"anchors": 1}, 48, 900, 50), ({"positives": 1}, 46, 900, 50), ({}, 60, 900, 100),
    )  # fmt: skip
    figure = drawn("declutr-sampling", matching)
    assert "Anchors: 1: 48.00, 2: 46.50" in figure.alt
    assert "Positives: 1: 46.00, 2: 47.50" in figure.alt


def test_objectives_of_one_length_and_amounts_with_theirs(tmp_path):
    matching = runs(
        tmp_path,
        ({}, 47, 900, 100), ({"objective": "mlm"}, 46, 900, 100), ({"objective": "contrastive"}, 45, 900, 100),
        ({}, 60, 900, 50), ({}, 44, 300, 30),
    )  # fmt: skip
    figure = drawn("declutr-objective", matching)
    assert "contrastive 45.00; masked LM 46.00; both 47.00" in figure.alt
    for said in ("(30 updates)", "(100 updates)"):
        assert said in figure.svg
    assert "(50 updates)" not in figure.svg


def test_heads_and_memories_beside_neither(tmp_path):
    matching = runs(
        tmp_path,
        ({}, 47, 900, 80),
        ({"projection": 128, "projection_activation": "linear"}, 47.1, 900, 80),
        ({"projection": 128, "projection_activation": "relu"}, 46, 900, 80),
        ({"memory": 512}, 45, 900, 80),
        ({"memory": 512, "temperature": 0.5}, 20, 900, 80),  # samples unlike the others
        ({}, 60, 900, 50), ({"anchors": 1}, 61, 900, 50), ({"positives": 1}, 62, 900, 50),
        ({"strategy": "adjacent"}, 63, 900, 50), ({"temperature": 0.1}, 64, 900, 50),
    )  # fmt: skip
    figure = drawn("declutr-extensions", matching)
    for said in ("Projection head", "Memory bank", ">none<", ">ReLU<", ">linear<", ">512<"):
        assert said in figure.svg
    assert "none: 47.00, 128 linear: 47.10, 128 ReLU: 46.00; Memory bank: none: 47.00, 512: 45.00" in figure.alt
    assert drawn("declutr-extensions", runs(tmp_path / "other", ({}, 47, 900, 80))) is None


def test_the_score_is_one_that_most_rows_have(tmp_path):
    runs(tmp_path, ({}, 47, 900, 50))
    for anchors in (1, 4):
        made.run(tmp_path, "declutr", USUAL | {"anchors": anchors}, base="embedded:mini-bert",
                 training={"planned_steps": 50}, scores=[made.score("STS-B", 40 + anchors)],
                 corpus={"uri": "documents", "kind": "documents", "count": 900, "sha256": f"{900:064x}"})  # fmt: skip
    figure = drawn("declutr-sampling", Matching(definition.load("declutr"), read_library(tmp_path)))
    assert figure.caption.startswith("STS-B test")
    assert "Anchors: 1: 41.00, 2: 47.00, 4: 44.00" in figure.alt
