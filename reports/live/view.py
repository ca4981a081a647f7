"""What the page shows of a state, in words and in places of its drawings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.live.remaining import clock, duration
from harness.live.state import FINISHED, KEPT, OPEN, Cell, InWork, RowScore, State, groups
from reports.read.comparison_runs import base_name

CARDS = 12  # runs in work that are shown with their curve; the others have a line each
LINES = 200  # of those, and of failures
WIDE, HIGH = 260.0, 64.0  # of a curve, in units of its drawing
STRIP = 120.0  # width of an interval's drawing

GLYPHS = {
    "running": "▶", "finished": "✓", "kept": "✓", "waiting": "·", "failed": "✕", "collapsed": "↓", "diverged": "↑",
    "pruned": "✂", "n/a": "–", "cancelled": "□",
}  # fmt: skip
HEADS = {
    "running": "Running",
    "dead": "Its coordinator is dead",
    "paused": "Paused",
    "cancelled": "Cancelled",
    "interrupted": "Interrupted",
    "failed": "Ended by an error",
    "ended": "Ended",
}


@dataclass(frozen=True)
class Curve:
    """A dev curve as a line: `points` of an SVG, its last and best score ×100, that before the first update, and the
    range of its axis."""

    points: str
    x: float
    y: float
    last: float
    best: float
    start: float | None
    low: float
    high: float


def view(state: State, now: float) -> dict[str, Any]:
    """Names of the template -> what they stand for."""
    counts, cells = state.counts, len(state.cells)
    noun = "trials" if state.kind == "study" else "runs"
    ended = state.ended
    rows = groups(state.cells)
    bases = {base for _, base in rows}
    base_of = {cell.label: base_name(cell.base_model) for cell in state.cells} if len(bases) > 1 else {}
    trouble = [cell for cell in state.cells if cell.state not in (*OPEN, FINISHED, KEPT)]
    return {
        "key": state.key,
        "title": state.title or state.name,
        "name": state.name,
        "kind": state.kind,
        "phase": state.phase,
        "head": HEADS[state.phase],
        "says": _says(state, ended, cells, noun, now),
        "counts": [(count, name, 100 * count / max(cells, 1)) for name, count in counts.items()],
        "facts": _facts(state, now),
        "command": state.command if state.phase not in ("running", "ended") else "",
        "cards": [_card(one, base_of.get(one.label, ""), now) for one in state.in_work[:CARDS]],
        "lines": [_card(one, "", now) for one in state.in_work[CARDS : CARDS + LINES]],
        "more": max(0, len(state.in_work) - CARDS - LINES),
        "scores": _scores(state),
        "rows": [
            {
                "row": row,
                "base": base_name(base) if len(bases) > 1 else "",
                "cells": [(cell.state, GLYPHS[cell.state], _tip(cell)) for cell in some],
                "counted": _counted(some),
            }
            for (row, base), some in rows.items()
        ],
        "several": len(bases) > 1,
        "trouble": trouble[:LINES],
        "untold": max(0, len(trouble) - LINES),
        "lost": [cell for cell in state.cells if cell.state == "waiting" and cell.reason][:LINES],
        "worked": state.worked,
        "noun": noun,
        "glyphs": [(name, GLYPHS[name]) for name in counts],
        "when": clock(state.time, now),
    }


def _says(state: State, ended: int, cells: int, noun: str, now: float) -> str:
    """Where it stands, in a sentence."""
    if state.phase == "ended":
        took = duration(state.time - state.begun)
        return f"All {cells} {noun} have ended, after {took}, at {clock(state.time, now)}."
    done = f"{ended} of {cells} {noun} have ended"
    if state.phase == "running":
        if ended == cells:
            return f"{done}; tables and reports are being made." if cells else "It is being prepared."
        if state.reason:
            return f"{done}; {state.reason}."
        if state.left is None:
            return f"{done}; how long it takes is told once one of them has a speed."
        return f"{done}; {state.left.told(now)}."
    why = f"{state.reason}; " if state.reason else ""
    text = f"{why}{done}. Nothing is lost: the same command goes on"
    return text[0].upper() + text[1:] + (":" if state.command else ".")


def _facts(state: State, now: float) -> list[tuple[str, str]]:
    by = f"{state.host}, process {state.pid}"
    facts = [(state.executor, "executor"), (by, "coordinator"), (clock(state.begun, now), "begun")]
    if state.phase == "running":
        facts.append((duration(now - state.begun), "so far"))
    return [(value, what) for value, what in facts if value]


def _card(one: InWork, base: str, now: float) -> dict[str, Any]:
    seen = one.seen
    return {
        "label": one.label,
        "row": one.row,
        "base": base,
        "seed": one.seed,
        "step": seen.step,
        "steps": seen.steps,
        "share": 100 * seen.step / seen.steps if seen.steps else 0.0,
        "text": seen.text,
        "speed": f"{seen.speed:.3g} updates/s" if seen.speed and seen.steps else "",
        "left": f"{duration(one.left)} of training left" if one.left is not None else "",
        "by": f"{seen.host}, process {seen.pid}",
        "age": duration(max(0.0, now - seen.time)),
        "since": duration(max(0.0, now - seen.begun)),
        "curve": _curve(seen.dev, seen.steps),
    }


def _curve(points: Sequence[tuple[int, float]], steps: int) -> Curve | None:
    """Where a dev curve is drawn; None without two points."""
    known = [(step, 100 * score) for step, score in points if -1 <= score <= 1]
    if len(known) < 2:
        return None
    values = [value for _, value in known]
    low, high = min(values), max(values)
    room = max(high - low, 0.5)
    last = max(steps, known[-1][0], 1)
    places = [(WIDE * step / last, HIGH - 4 - (HIGH - 8) * (value - low) / room) for step, value in known]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    start = values[0] if known[0][0] == 0 else None
    return Curve(line, *places[-1], values[-1], max(values[start is not None :]), start, low, high)


def _scores(state: State) -> dict[str, Any] | None:
    """The table of scores: of each row its columns, and for the first of them where its interval lies."""
    columns = list(dict.fromkeys(score.column for score in state.scores))
    if not columns:
        return None
    by_place = {(s.row, s.base_model, s.column): s for s in state.scores}
    first = [s for s in state.scores if s.column == columns[0]]
    low = min(s.mean if s.low is None else s.low for s in first)
    high = max(s.mean if s.high is None else s.high for s in first)
    rows = groups(state.cells)
    bases = {base for _, base in rows}

    def place(value: float) -> float:
        return 6 + (STRIP - 12) * (value - low) / max(high - low, 1e-9)

    lines = []
    for (row, base), cells in rows.items():
        mine = [by_place.get((row, base, column)) for column in columns]
        if not any(mine):
            continue
        head = mine[0]
        strip = None
        if head is not None:
            ends = (head.mean, head.mean) if head.low is None or head.high is None else (head.low, head.high)
            strip = [place(ends[0]), place(ends[1]), place(head.mean)]
        n = max(score.n for score in mine if score is not None)
        lines.append(
            {
                "row": row,
                "base": base_name(base) if len(bases) > 1 else "",
                "n": n,
                "of": len(cells),
                "strip": strip,
                "cells": [_score(score) for score in mine],
            }
        )
    return {"columns": columns, "lines": lines}


def _score(score: RowScore | None) -> tuple[str, str]:
    """Mean, and its interval or deviation."""
    if score is None:
        return "–", ""
    if score.low is not None and score.high is not None:
        return f"{score.mean:.2f}", f"{score.low:.2f} to {score.high:.2f}"
    return f"{score.mean:.2f}", f"± {score.deviation:.2f}" if score.deviation is not None else ""


def _tip(cell: Cell) -> str:
    took = f", {duration(cell.seconds)}" if cell.seconds else ""
    why = f": {cell.reason}" if cell.reason else ""
    return f"{cell.label}: {cell.state}{took}{why}"


def _counted(cells: Sequence[Cell]) -> str:
    counts = State("", cells=list(cells)).counts
    return ", ".join(f"{count} {name}" for name, count in counts.items())
