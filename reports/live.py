"""The page of a running comparison or study: one HTML file made from the content of
`WORKDIR/progress.json`.

Keys of `progress`; times are seconds since 1970, durations seconds:

    name, title, kind        kind: "comparison" or "study"
    phase, reason            "running", "ended", "stopped" or "failed", and why it is not running
    host, pid, executor, workers, started, updated
    remaining_seconds        estimate, or None
    runs                     list of id, label, row, base_model, seed, state, text, step, steps,
    seconds, dev

`state` of a run is one of `STATES`; `text` is what it is doing, or why it has no scores; `dev` is a
list of (step, score) with scores between -1 and 1, which are shown times 100.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from harness.files.printable import visible
from harness.machine.progress import describe_duration
from reports.write.environment import environment

REFRESH = 5  # seconds after which a browser loads the page again, while it runs
STATES = {
    "running": "▶",
    "finished": "✓",
    "reused": "✓",
    "collapsed": "↓",
    "diverged": "↑",
    "pruned": "✂",
    "failed": "✕",
    "n/a": "–",
    "waiting": "·",
}
"""State of a run -> its mark, in the order of the page."""
_TROUBLE = ("failed", "collapsed", "diverged", "n/a")
_LINES = 200  # of a table
# of a dev curve in text: its characters, and how many of the latest scores
_BARS = "▁▂▃▄▅▆▇█"
_SHOWN = 40


def page(progress: Mapping[str, Any], now: float) -> str:
    """Draw the page.

    Args:
        progress: what the module's docstring describes; any text in it may be hostile, and is
            escaped.
        now: the current time, in seconds since 1970.

    Returns:
        HTML that needs no other file, no network and no script. It reloads itself while `phase` is
        "running".
    """
    runs = progress["runs"]
    counted = Counter(run["state"] for run in runs)
    by_row: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        label = " · ".join(filter(None, (run["row"], run["base_model"])))
        by_row.setdefault(label, []).append(run)
    rows = []
    for label, some in by_row.items():
        rows.append((label, some, _in_order(Counter(run["state"] for run in some))))
    counts = []
    for state, count in _in_order(counted):
        counts.append((state, count, 100 * count / len(runs)))
    running = [run for run in runs if run["state"] == "running"]
    trouble = [run for run in runs if run["state"] in _TROUBLE]
    updated = time.localtime(progress["updated"])
    template = environment(visible, autoescape=True).get_template("live.html.j2")
    return template.render(
        progress=progress,
        running=progress["phase"] == "running",
        refresh=REFRESH,
        headline=_headline(progress, counted),
        updated=time.strftime("%Y-%m-%d %H:%M:%S %Z", updated),
        counts=counts,
        marks=STATES,
        active=[_active(run, now) for run in running[:_LINES]],
        rows=rows,
        trouble=trouble[:_LINES],
    )


def _headline(progress: Mapping[str, Any], counted: Mapping[str, int]) -> str:
    if progress["kind"] == "study":
        noun = "trials"
    else:
        noun = "runs"
    total = len(progress["runs"])
    done = total - counted["waiting"] - counted["running"]
    if total:
        summary = f"{done} of {total} {noun} have ended"
    else:
        summary = f"No {noun} yet"
    if progress["phase"] != "running":
        took = describe_duration(max(0.0, progress["updated"] - progress["started"]))
        text = f"{progress['phase'].capitalize()} after {took}"
        if progress["reason"]:
            text += f": {progress['reason']}"
        text += f". {summary}."
        if progress["phase"] != "ended":
            text += " The same command resumes it."
        return text
    left = progress["remaining_seconds"]
    if left is None:
        return f"{summary}."
    return f"{summary}; about {describe_duration(left)} left."


def _active(run: Mapping[str, Any], now: float) -> dict[str, Any]:
    """A running run with its share of training steps in percent, how long it has run, and its dev
    curve as text.
    """
    if run["steps"]:
        share = 100 * (run["step"] or 0) / run["steps"]
    else:
        share = None
    known = []
    for _, score in run["dev"]:
        if score is not None and math.isfinite(score):
            known.append(score)
    scores = [100 * score for score in known[-_SHOWN:]]
    low = min(scores, default=0.0)
    height = max(scores, default=0.0) - low or 1.0
    highest = len(_BARS) - 1
    curve = ""
    for score in scores:
        curve += _BARS[int(highest * (score - low) / height)]
    if run["began"]:
        took = describe_duration(now - run["began"])
    else:
        took = ""
    return {
        **run,
        "share": share,
        "took": took,
        "curve": curve,
        "last": f"{scores[-1]:.1f}" if scores else "",
    }


def _in_order(counted: Mapping[str, int]) -> list[tuple[str, int]]:
    """Each state that occurs and its count, in the order of the page."""
    return [(state, counted[state]) for state in STATES if counted.get(state)]
