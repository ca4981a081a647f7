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
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from harness.files.printable import visible
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
    columns = list(dict.fromkeys(score["task"] for score in progress["scores"]))
    by_place = {(score["row"], score["task"]): score for score in progress["scores"]}
    scored = dict.fromkeys(score["row"] for score in progress["scores"])
    several = len({run["base_model"] for run in runs}) > 1
    html: str = _template().render(
        progress=progress,
        running=progress["phase"] == "running",
        refresh=REFRESH,
        headline=_headline(progress, counted, now),
        facts=_facts(progress, now),
        counts=[(state, counted[state], 100 * counted[state] / len(runs)) for state in STATES if counted[state]],
        marks=STATES,
        active=[_active(run) for run in runs if run["state"] == "running"][:_LINES],
        rows=[(label, some, _count(some)) for label, some in _by_row(runs, several).items()],
        figure=_figure([run for run in runs if run["dev"]], several),
        trouble=[run for run in runs if run["state"] in _TROUBLE][:_LINES],
        columns=columns,
        scores=[(row, [by_place.get((row, column)) for column in columns]) for row in scored],
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


def duration(seconds: float) -> str:
    """A duration in words: "45 s", "12 min", "3 h 5 min", "2 d 4 h"."""
    minutes = round(seconds / 60)
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def _headline(progress: Mapping[str, Any], counted: Mapping[str, int], now: float) -> str:
    noun, total = "trials" if progress["kind"] == "study" else "runs", len(progress["runs"])
    done = total - counted["waiting"] - counted["running"]
    said = f"{done} of {total} {noun} have ended" if total else f"No {noun} yet"
    if progress["phase"] != "running":
        took = duration(max(0.0, progress["updated"] - progress["started"]))
        why = f": {progress['reason']}" if progress["reason"] else ""
        rest = "" if progress["phase"] == "ended" else " The same command resumes it."
        return f"{progress['phase'].capitalize()} after {took}{why}. {said}.{rest}"
    left = progress["remaining_seconds"]
    if left is None:
        return f"{said}."
    end = time.strftime("%H:%M" if left < 43200 else "%Y-%m-%d %H:%M", time.localtime(now + left))
    return f"{said}; about {duration(left)} left, until {end}."


def _facts(progress: Mapping[str, Any], now: float) -> list[tuple[str, str]]:
    executor, workers = progress["executor"], progress["workers"]
    facts = [
        (executor + (f", {workers} workers" if workers and workers > 1 else ""), "executor"),
        (f"{progress['host']}, process {progress['pid']}", "coordinator"),
        (time.strftime("%Y-%m-%d %H:%M", time.localtime(progress["started"])), "started"),
        (time.strftime("%H:%M:%S %Z", time.localtime(progress["updated"])), "updated"),
    ]
    return [*facts, (duration(now - progress["started"]), "so far")] if progress["phase"] == "running" else facts


def _active(run: Mapping[str, Any]) -> dict[str, Any]:
    """A running run with its share of training steps in percent, and how long it has run."""
    share = 100 * (run["step"] or 0) / run["steps"] if run["steps"] else None
    return {**run, "share": share, "took": duration(run["seconds"]) if run["seconds"] else ""}


def _row(run: Mapping[str, Any], several: bool) -> str:
    return f"{run['row']} · {run['base_model']}" if several else str(run["row"])


def _by_row(runs: Iterable[Mapping[str, Any]], several: bool) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        found.setdefault(_row(run, several), []).append(run)
    return found


def _count(runs: Sequence[Mapping[str, Any]]) -> str:
    counted = Counter(run["state"] for run in runs)
    return ", ".join(f"{counted[state]} {state}" for state in STATES if counted[state])


def _figure(runs: Sequence[Mapping[str, Any]], several: bool) -> dict[str, Any] | None:
    """The dev curves as polylines in the units of the SVG, with its ticks; None if no run has two points."""
    runs = sorted(runs, key=lambda run: run["state"] != "running")[:_CURVES]
    known = [(run, [(x, 100 * y) for x, y in run["dev"] if y is not None and math.isfinite(y)]) for run in runs]
    known = [(run, points) for run, points in known if len(points) > 1]
    if not known:
        return None
    values = [y for _, points in known for _, y in points]
    low, high, last = min(values), max(values), max(x for _, points in known for x, _ in points)
    room = max(high - low, 0.5)
    labels = list(dict.fromkeys(_row(run, several) for run, _ in known))

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (_WIDTH - _LEFT - 8) * x / max(last, 1)
        return across, 8 + (_HEIGHT - _BOTTOM - 8) * (1 - (y - low) / room)

    lines = []
    for run, points in known:
        drawn = (place(x, y) for x, y in points)
        colour = labels.index(_row(run, several)) % _COLOURS
        lines.append((colour, run["label"], " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)))
    ticks = [(place(0, y)[1], f"{y:.1f}") for y in (low, low + room / 2, low + room)]
    names = [(number % _COLOURS, label) for number, label in enumerate(labels)]
    size = {"width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "bottom": _HEIGHT - _BOTTOM}
    return {**size, "lines": lines, "ticks": ticks, "last": last, "names": names}
