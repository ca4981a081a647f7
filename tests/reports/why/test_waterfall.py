"""The waterfall of an answer: nothing overlaps or is cut, and it can be read in a narrow column."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from reports.figures.style import inline
from reports.stats.estimate import Estimate
from reports.targets import Measure, Target
from reports.why.document import waterfall
from reports.why.explanation import Explanation, FactorShare, RowBetween, Smallest

COLUMN = 3.3  # inches, of a paper in two columns
SMALLEST = 6  # points
PHONE = 390 - 2 * 29  # pixels, less what a page has around a figure


def explanation(names: list[str], values: list[float], half: float) -> Explanation:
    target = Target("t", "Embedded-STS-natural", "STS-natural", (Measure("t", "embedded"),))
    shares = []
    for name, value in zip(names, values, strict=True):
        estimate = Estimate(value / 100, (value - half) / 100, (value + half) / 100, 0.01)
        shares.append(FactorShare(name, f"{name} (1, not 2)", estimate, None, None))
    first, second = "A row with a label of more than forty characters", "SimCSE"
    ends = (
        RowBetween(second, (), 61.25, 0.2, 3),
        RowBetween(first, tuple(names), 61.25 + sum(values), 0.2, 3),
    )
    whole = Estimate(sum(values) / 100, 0.0, 0.0, 0.01)
    return Explanation(
        first, second, target, whole, tuple(shares), None, Smallest((), None), ends, 0, 3, 0.5
    )


@pytest.mark.parametrize(
    ("names", "values", "half"),
    [
        (["pooling"], [0.02], 0.01),
        (["method", "view", "batch size and learning rate"], [-21.37, 12.5, -3.0], 22.5),
        (["x" * 80, "training text", "pooling", "a", "b", "c"], [8.0, -8.0, 6.1, 2.1, 0.2, 0.0], 2),
    ],
)
def test_texts_are_apart_inside_and_large_enough(
    names: list[str], values: list[float], half: float
) -> None:
    figure = waterfall(explanation(names, values, half))
    plot = figure.plot
    renderer = plot.canvas.get_renderer()
    (axes,) = plot.axes
    texts = [*axes.texts, axes.xaxis.label]
    assert len(axes.texts) == 2 * (len(names) + 2)
    boxes = [text.get_window_extent(renderer) for text in texts]
    page = plot.bbox
    for box in boxes:
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= page.x1
        assert box.y1 <= page.y1
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    scale = COLUMN / plot.get_size_inches()[0]
    assert min(text.get_fontsize() for text in texts) * scale >= SMALLEST


def test_a_phone_shows_the_whole_width() -> None:
    figure = waterfall(explanation(["pooling", "view"], [2.0, -1.0], 0.5))
    width = re.search(r"min-width: (\d+)px", inline(figure, "a"))
    assert width is not None
    assert int(width[1]) <= PHONE
