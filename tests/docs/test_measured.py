"""Figures of campaigns: they are saved one by one, bounds count, and the pages have those of the
code as it is now.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.measured import all_figures, markdown, table_of, value_of
from tests.support.simulated_rows import planned_pair
from tests.support.simulated_until import decide_at_once, draw_scores
from tools.campaigns import (
    error_rates,
    example_rates,
    gate,
    measured,
    prediction_and_spread,
    repeated_texts,
)
from tools.campaigns.measured import Figure, measure, read_figures, share


def test_every_figure_of_the_pages_is_within_its_bound() -> None:
    assert [one for figures in all_figures().values() for one in figures if one.is_broken] == []


@pytest.mark.parametrize(
    "name",
    [
        "10 x 3, all 0.84",
        "10 x 3, first 0.84, others 0.2",
        "2 x 3, 3 and 0.2",
        "3 and 10 seeds, 0.84 and 0.2",
        "10 x 10, first 3, others 0.2",
    ],
)
def test_a_planned_pair_errs_today_as_the_page_says(name: str) -> None:
    design = error_rates.DESIGNS[name]
    found = planned_pair(design.spreads, design.seeds, draws=error_rates.PLANNED_DRAWS)
    assert found.wrong == pytest.approx(value_of("planned", name, error_rates.DIFFERS), abs=0.01)
    assert found.found == pytest.approx(value_of("planned", name, error_rates.FOUND), abs=0.01)


def test_adding_seeds_finds_today_what_the_page_says() -> None:
    cell = "1 point apart, seeds vary by 0.84 and 0.84"
    found = decide_at_once(draw_scores(1.0, (0.84, 0.84), 4000), 1.0)
    different = value_of("until", cell, "called different")
    assert 100 * found.different.mean() == pytest.approx(different, abs=3 * 0.8)
    assert found.seeds.mean() == pytest.approx(value_of("until", cell, "seeds of a row"), abs=0.2)


@pytest.mark.parametrize(
    "part", [example_rates.measure_accuracies, error_rates.measure_fifty_seeds]
)
def test_figures_without_draws_are_those_of_today(part: measured.Part) -> None:
    for figure in part():
        known = value_of(figure.part, figure.cell, figure.name)
        assert figure.value == pytest.approx(known, abs=0.01)


def test_every_part_that_a_campaign_has_is_measured() -> None:
    campaigns = (error_rates, gate, prediction_and_spread, repeated_texts)
    parts = {part for campaign in campaigns for part in campaign.PARTS} - {"test-pairs"}
    assert parts <= all_figures().keys()


def test_the_error_of_a_share_is_binomial_and_never_0() -> None:
    assert share("p", "c", "n", 50, 1000).error == pytest.approx(0.69, abs=0.01)
    none = share("p", "c", "n", 0, 100)
    assert none.value == 0
    assert 0.5 < none.error < 1


@pytest.mark.parametrize(
    ("value", "error", "bounds", "broken"),
    [
        (5.3, 0.2, {"at_most": 5.0}, False),
        (5.5, 0.2, {"at_most": 5.0}, True),
        (54.0, 0.4, {"at_least": 55.0}, True),
        (54.5, 0.4, {"at_least": 55.0}, False),
        (1.0, 0.0, {"at_most": 0.0}, True),
        (99.0, 0.0, {}, False),
    ],
)
def test_a_bound_is_broken_by_more_than_two_standard_errors(
    value: float, error: float, bounds: dict[str, float], broken: bool
) -> None:
    assert Figure("p", "c", "n", value, error, 100, **bounds).is_broken is broken


def of_part(part: str, *values: float) -> list[Figure]:
    return [Figure(part, f"cell {n}", "x", value) for n, value in enumerate(values)]


def test_a_campaign_that_is_cut_keeps_what_it_has(tmp_path: Path) -> None:
    file = tmp_path / "figures.csv"
    measure(file, {"a": lambda: iter(of_part("a", 1, 2)), "b": lambda: iter(of_part("b", 3))})

    def cut() -> Iterator[Figure]:
        yield of_part("a", 7)[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(file, {"a": cut})
    assert [(one.part, one.value) for one in read_figures(file)] == [("a", 7), ("a", 2), ("b", 3)]
    measure(file, {"a": lambda: iter(of_part("a", 8))})
    assert [(one.part, one.value) for one in read_figures(file)] == [("a", 8), ("b", 3)]


def test_a_broken_bound_ends_a_campaign_with_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["campaign"])
    for value, code in ((4.0, 0), (9.0, 1)):
        figure = Figure("a", "cell", "x", value, 0.5, 100, at_most=5.0)
        with pytest.raises(SystemExit) as ended:
            measured.main(tmp_path / "figures.csv", {"a": lambda one=figure: iter([one])}, "A.")
        assert ended.value.code == code


def test_a_table_has_draws_and_bounds_once_where_all_share_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    figures = [
        Figure("p", "one", "wrong", 3.04, 0.12, 500, at_most=5.0),
        Figure("p", "two", "wrong", 4.0, 0.2, 500, at_most=5.0),
        Figure("p", "one", "points", 2.5, 0.01, 20, at_most=2.55),
        Figure("p", "two", "points", 1.7, 0.01, 20),
    ]
    monkeypatch.setattr("docs.measured.all_figures", lambda: {"p": figures})
    assert table_of("p", "design") == markdown(
        ("design", "wrong (500 draws, at most 5)", "points (20 draws)"),
        [("one", "3.0 ± 0.1", "2.50 ± 0.01 (at most 2.55)"), ("two", "4.0 ± 0.2", "1.70 ± 0.01")],
    )
