"""Figures of cosines, layers, cost and training: what they are made of, against numbers worked by
hand.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from harness.results.store import RunFolder
from harness.tasks.geometry import cosine_histograms
from reports.figures import layer_maps, training_curves
from reports.figures.cosine_histograms import histograms, pool_cosines
from reports.figures.cost_tradeoff import Point, pareto, tradeoff
from reports.figures.intervals import overview
from reports.figures.style import with_settings
from reports.load import RecordedRow, read_comparison
from reports.records import layer_grids
from reports.stats.significance import Significance
from reports.targets import rows_shown, targets
from tests.support import synthetic

score = synthetic.score

TASK, SOURCE = "geometry:Embedded-STS-natural", "embedded"
EMBEDDED = ("Embedded-STS-natural",)


@pytest.fixture
def made(tmp_path: Path):
    return synthetic.Invented(tmp_path, scale=0.1)


def kept(seed: int, *, n: int = 40, d: int = 8) -> dict[str, dict[str, object]]:
    """What a geometry task keeps for figures, of random vectors."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, d))
    gold = np.arange(n) % 6
    histograms = cosine_histograms(x, x + generator.normal(size=x.shape), gold)
    return {TASK: {"cosines": histograms}}


def test_the_overview_has_every_row_with_its_interval_best_first(made):
    for label, noise, seeds in (
        ("SCD", 3.0, (1, 2, 3)),
        ("SimCSE", 0.5, (1, 2, 3)),
        ("VICReg", 1.0, (1,)),
    ):
        for seed in seeds:
            made.add(label, seed, noise=noise, tasks=("STS12", "STS-B"), curves=False)
    comparison = read_comparison(made.workdir, "invented")
    figure = overview(comparison, Significance(comparison))
    assert figure is not None
    number = r"(\d+\.\d\d)"
    interval = rf"{number} \({number} to {number}\)"
    # Rows that cannot be judged come last.
    found = re.fullmatch(
        rf"[^:]*: SimCSE {interval}; SCD {interval}; VICReg {number} \(too few seeds\)\.",
        figure.alt,
    )
    assert found is not None
    mean, low, high = map(float, found.groups()[:3])
    assert low < mean < high
    assert "training," in figure.svg
    assert "a second" not in figure.svg, "no speed was measured"
    with with_settings({"figure.figsize": (3.3, 2.5)}):
        narrow = overview(comparison, Significance(comparison))
    assert narrow is not None
    assert "training," not in narrow.svg, "the width of a column has no room for costs"


def bucket(low: int, counts: list[int], mean: float | None) -> dict[str, object]:
    return {
        "low": low,
        "high": low + 1,
        "n": sum(counts),
        "mean": mean,
        "std": 0.1,
        "counts": counts,
    }


def test_seeds_add_up_and_the_mean_is_that_of_all_pairs():
    edges = [-1.0, -0.5, 0.0, 0.5, 1.0]
    one = {"bins": edges, "buckets": [bucket(0, [0, 0, 2, 0], 0.4), bucket(1, [0, 0, 0, 0], None)]}
    two = {"bins": edges, "buckets": [bucket(0, [0, 1, 5, 0], 0.1), bucket(1, [0, 0, 0, 0], None)]}
    both = pool_cosines([one, two])
    assert both.counts.tolist() == [[0, 1, 7, 0], [0, 0, 0, 0]]
    assert both.ranges == ["0–1", "1–2"]
    assert both.means[0] == pytest.approx((2 * 0.4 + 6 * 0.1) / 8)
    assert math.isnan(both.means[1])
    with pytest.raises(ValueError, match="edges"):
        pool_cosines([one, {**two, "bins": [-1.0, -0.4, 0.0, 0.5, 1.0]}])


def test_cosine_histograms_say_what_they_show_and_are_drawn_alike_every_time(made):
    for seed in (1, 2):
        made.extend(made.add("SimCSE $x_1$", seed, tasks=EMBEDDED), [], figures=kept(seed))
    comparison = read_comparison(made.workdir, "invented")
    figure = histograms(comparison, TASK, SOURCE)
    assert figure is not None
    assert "SimCSE $x_1$" in figure.alt
    assert "$x_1$" in figure.svg  # text, not mathematics
    again = histograms(comparison, TASK, SOURCE)
    assert again is not None
    assert (again.svg, again.png, again.pdf) == (figure.svg, figure.png, figure.pdf)


def test_damaged_data_is_left_out_with_a_warning(made):
    good = made.add("good", tasks=EMBEDDED)
    made.extend(good, [], figures=kept(1))
    for i, broken in enumerate(({"cosines": {"bins": [0, 1]}}, {"cosines": "no"})):
        made.extend(made.add(f"broken {i}", tasks=EMBEDDED), [], figures={TASK: broken})
    torn = made.add("torn", tasks=EMBEDDED)
    RunFolder(made.workdir, torn.id).details_file.write_text('{"figures": {"geometry:')
    comparison = read_comparison(made.workdir, "invented")
    figure = histograms(comparison, TASK, SOURCE)
    assert figure is not None
    assert "for 1 rows" in figure.alt
    assert sum("damaged" in text for text in comparison.warnings) == 2
    assert any(torn.id in text for text in comparison.warnings)


def test_every_term_of_a_loss_has_a_panel_whatever_its_name(made):
    record = made.add("SimCSE", tasks=EMBEDDED)
    line = {"kind": "train", "loss": 1.0, "temperature": 0.05, "epoch": 2.0, "lr": 3e-5}
    log = "".join(json.dumps({"step": step, **line}) + "\n" for step in (5, 10))
    RunFolder(made.workdir, record.id).curves_file.write_text(log)
    figure = training_curves.losses(read_comparison(made.workdir, "invented"))
    assert figure is not None
    assert figure.alt.endswith(": SimCSE loss; SimCSE temperature; SimCSE epoch.")


def test_runs_without_data_draw_nothing(made):
    made.add("SimCSE", tasks=EMBEDDED, curves=False)
    comparison = read_comparison(made.workdir, "invented")
    assert histograms(comparison, TASK, SOURCE) is None
    assert layer_grids.grids(comparison) == []
    assert tradeoff(comparison, None) is None
    assert training_curves.development(comparison) is None
    assert training_curves.losses(comparison) is None


def rows_of(made, noises: dict[str, float]) -> tuple[list[RecordedRow], object]:
    for label, noise in noises.items():
        made.add(
            label,
            noise=noise,
            tasks=EMBEDDED,
            supervision="untrained" if label == "mean" else "unsupervised",
        )
    comparison = read_comparison(made.workdir, "invented")
    return list(comparison.rows), targets(comparison)[0]


def test_a_full_figure_keeps_the_best_rows_and_the_best_untrained_one_in_order(made):
    rows, target = rows_of(made, {"a": 3.0, "b": 0.5, "mean": 9.0, "c": 1.0, "d": 2.0})
    shown, said = rows_shown(rows, target, room=3)
    assert [row.label for row in shown] == ["mean", "b", "c"]
    assert "a, d" in said
    assert rows_shown(rows, target, room=5) == (rows, "")
    value = target.value(rows[1])
    assert value == pytest.approx(100 * rows[1].records[0].score("Embedded-STS-natural"))


def test_pareto_front_by_hand(made):
    row = RecordedRow.of_records("x", "base", (made.add("x", tasks=()),))
    a, b, c, d, e = (Point(row, *at) for at in ((1, 50), (2, 60), (3, 55), (2, 40), (4, 60)))
    assert pareto([c, e, d, b, a]) == [a, b]  # the same score for more is no gain
    assert pareto([]) == []


def test_accuracy_against_cost(made):
    for label, noise, kind in (
        ("mean", 1.3, "untrained"),
        ("random", 60.0, "untrained"),
        ("SCD", 1.0, "unsupervised"),
    ):
        made.add(label, noise=noise, supervision=kind, tasks=EMBEDDED)
    slow = made.add("slow", noise=1.5, tasks=EMBEDDED)
    made.extend(slow, [], cost={"train_seconds": 900.0})
    teacher = made.add("teacher", noise=0.1, supervision="supervised", tasks=EMBEDDED)
    made.extend(teacher, [], cost={"train_seconds": 0.0})
    comparison = read_comparison(made.workdir, "invented")
    figure = tradeoff(comparison, targets(comparison)[0])
    assert figure is not None
    front = figure.alt.split("On the front, with cost and score: ")[1]
    assert front.startswith("mean (0, ")
    assert "SCD (41, " in front  # 40 + seed seconds
    assert "slow" not in front
    assert "Below the scale: random (" in figure.caption
    for name in ("SCD", "slow", "mean"):
        assert f">{name}</text>" in figure.svg
    assert "teacher" not in figure.svg  # trained elsewhere


def test_layer_map_names_the_best_of_each_row(made):
    values = {(0, "cls"): 0.1, (1, "cls"): 0.3, (0, "mean"): 0.5, (1, "mean"): 0.4}
    made.extend(
        made.add("SimCSE", tasks=EMBEDDED),
        [
            score(
                f"STS-B@layer:{k}:{p}",
                "layers",
                "senteval",
                "spearman",
                v,
                aggregation="all",
                n=1379,
            )
            for (k, p), v in values.items()
        ],
    )
    made.extend(
        made.add("whitening", tasks=EMBEDDED), [], missing={"layers:STS-B": "not one transformer"}
    )
    comparison = read_comparison(made.workdir, "invented")
    (grid,) = layer_grids.grids(comparison)
    assert (grid.layers, grid.poolings) == ((0, 1), ("cls", "mean"))
    figure = layer_maps.layer_map(comparison, grid)
    assert figure is not None
    assert "Best: SimCSE: layer 0, mean, 50.00." in figure.alt
    assert "1,379 pairs" in figure.caption
    assert "whitening (not one transformer)" in figure.caption


def test_curves_of_seeds_are_means_of_consecutive_lines_of_a_long_log():
    logs = [
        (
            seed,
            [{"step": step, "kind": "train", "loss": float(seed * step)} for step in range(1, 121)]
            + [{"step": 9, "kind": "dev"}],
        )
        for seed in (1, 2)
    ]
    curves = training_curves._curves(logs, ("train",), "loss")
    assert curves.shape == (60, 2)
    assert (curves.index[0], curves.index[-1]) == (2, 120)  # the last step of each pair of lines
    assert curves[2].iloc[0] == pytest.approx(3)  # (2 + 4) / 2
    assert training_curves._curves(logs, ("train",), "absent").size == 0


@pytest.mark.parametrize(("seeds", "drawn"), [(20, "thin: single seeds"), (21, "band")])
def test_many_seeds_are_drawn_as_a_band(made, seeds, drawn):
    for seed in range(1, seeds + 1):
        made.add("SCD", seed, tasks=EMBEDDED)
    comparison = read_comparison(made.workdir, "invented")
    other = "band" if drawn != "band" else "thin: single seeds"
    for figure in (training_curves.development(comparison), training_curves.losses(comparison)):
        assert figure is not None
        assert drawn in figure.caption
        assert other not in figure.caption
        lines = figure.svg.count('<g id="line2d_')
        assert (lines > 3 * seeds) == (drawn != "band")
