"""The page of a running comparison or study: one HTML file made from the content of `WORKDIR/progress.json`.

Keys of `progress`; times are seconds since 1970, durations seconds:

    name, title, kind        kind: "comparison" or "study"
    phase, reason            "running", "ended", "stopped" or "failed", and why it is not running
    host, pid, executor, workers, started, updated
    remaining_seconds        estimate, or None
    runs                     list of id, label, row, base_model, seed, state, text, step, steps, seconds, dev
    scores                   list of row, task, mean, n: means over finished runs, in points

`state` of a run is one of `STATES`; `text` is what it is doing, or why it has no scores; `dev` is a list of (step,
score) with scores between -1 and 1, which are shown times 100.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from harness.files.printable import visible
from harness.runs.progress import describe_duration
from reports.write.html import TEMPLATES

REFRESH = 5  # seconds after which a browser loads the page again, while it runs
STATES = {
    "running": "▶", "finished": "✓", "reused": "✓", "collapsed": "↓", "diverged": "↑", "pruned": "✂", "failed": "✕",
    "n/a": "–", "waiting": "·",
}  # fmt: skip
"""State of a run -> its mark, in the order of the page."""
_TROUBLE = ("failed", "collapsed", "diverged", "n/a")
_CURVES, _LINES, _COLOURS = 60, 200, 8  # curves of the figure, lines of a table, colours of the rows
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720.0, 260.0, 44.0, 28.0  # of the figure, in its own units


def page(progress: Mapping[str, Any], now: float) -> str:
    """Draw the page.

    Args:
        progress: what the module's docstring describes; any text in it may be hostile, and is escaped.
        now: the current time, in seconds since 1970.

    Returns:
        HTML that needs no other file, no network and no script. It reloads itself while `phase` is "running".
    """
    runs = progress["runs"]
    counted = Counter(run["state"] for run in runs)
    several = len({run["base_model"] for run in runs}) > 1
    by_row: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        by_row.setdefault(f"{run['row']} · {run['base_model']}" if several else str(run["row"]), []).append(run)
    means: dict[str, dict[str, Any]] = {}
    for score in progress["scores"]:
        means.setdefault(score["row"], {})[score["task"]] = score
    columns = list(dict.fromkeys(score["task"] for score in progress["scores"]))
    html: str = _template().render(
        progress=progress,
        running=progress["phase"] == "running",
        refresh=REFRESH,
        headline=_headline(progress, counted, now),
        updated=time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(progress["updated"])),
        counts=[(state, count, 100 * count / len(runs)) for state, count in _in_order(counted)],
        marks=STATES,
        active=[_active(run) for run in runs if run["state"] == "running"][:_LINES],
        rows=[(label, some, _describe_counts(some)) for label, some in by_row.items()],
        figure=_figure(by_row),
        trouble=[run for run in runs if run["state"] in _TROUBLE][:_LINES],
        columns=columns,
        scores=[(row, [by_task.get(column) for column in columns]) for row, by_task in means.items()],
    )
    return html


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters["name"] = lambda state: state.replace("/", "")  # of a state, as a CSS class
    return environment.get_template("live.html.j2")


def _headline(progress: Mapping[str, Any], counted: Mapping[str, int], now: float) -> str:
    noun, total = "trials" if progress["kind"] == "study" else "runs", len(progress["runs"])
    done = total - counted["waiting"] - counted["running"]
    summary = f"{done} of {total} {noun} have ended" if total else f"No {noun} yet"
    if progress["phase"] != "running":
        took = describe_duration(max(0.0, progress["updated"] - progress["started"]))
        why = f": {progress['reason']}" if progress["reason"] else ""
        rest = "" if progress["phase"] == "ended" else " The same command resumes it."
        return f"{progress['phase'].capitalize()} after {took}{why}. {summary}.{rest}"
    left = progress["remaining_seconds"]
    if left is None:
        return f"{summary}."
    end = time.strftime("%H:%M" if left < 43200 else "%Y-%m-%d %H:%M", time.localtime(now + left))
    return f"{summary}; about {describe_duration(left)} left, until {end}."


def _active(run: Mapping[str, Any]) -> dict[str, Any]:
    """A running run with its share of training steps in percent, and how long it has run."""
    share = 100 * (run["step"] or 0) / run["steps"] if run["steps"] else None
    return {**run, "share": share, "took": describe_duration(run["seconds"]) if run["seconds"] else ""}


def _in_order(counted: Mapping[str, int]) -> list[tuple[str, int]]:
    """Each state that occurs and its count, in the order of the page."""
    return [(state, counted[state]) for state in STATES if counted.get(state)]


def _describe_counts(runs: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{count} {state}" for state, count in _in_order(Counter(run["state"] for run in runs)))


def _figure(by_row: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any] | None:
    """The dev curves as polylines in the units of the SVG, with its ticks; None if no run has two points."""
    curves = []
    for label, runs in by_row.items():
        for run in runs:
            points = [(x, 100 * y) for x, y in run["dev"] if y is not None and math.isfinite(y)]
            curves += [(run, label, points)] if len(points) > 1 else []
    if not curves:
        return None
    curves = sorted(curves, key=lambda curve: curve[0]["state"] != "running")[:_CURVES]
    xs, ys = zip(*(point for _, _, points in curves for point in points), strict=True)
    low, last, room = min(ys), max(xs), max(max(ys) - min(ys), 0.5)
    names = {label: number % _COLOURS for number, label in enumerate(dict.fromkeys(label for _, label, _ in curves))}

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (_WIDTH - _LEFT - 8) * x / max(last, 1)
        return across, 8 + (_HEIGHT - _BOTTOM - 8) * (1 - (y - low) / room)

    return {
        "width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "bottom": _HEIGHT - _BOTTOM, "last": last,
        "lines": [
            (names[label], run["label"], " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in points))
            for run, label, points in curves
        ],
        "ticks": [(place(0, y)[1], f"{y:.1f}") for y in (low, low + room / 2, low + room)],
        "names": [(colour, label) for label, colour in names.items()],
    }  # fmt: skip
