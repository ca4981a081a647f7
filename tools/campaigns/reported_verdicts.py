"""Points on verdicts: gate (h), spreads (i), ties, few seeds and few examples (j), plans (k), rows
of paper definitions (l), and headlines (o).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import harness
from harness.errors import InputError
from tools.campaigns import forked
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_runs import CLS, MEAN, SIMCSE, TASK, compare
from tools.campaigns.reported_scores import table, write

Rows = Mapping[str, Sequence[float]]
OLD = [79.9, 80.3, 80.1, 80.0, 80.2]
BETTER = [82.1, 82.4, 81.9, 82.2, 82.0]
WORSE = [75.1, 75.4, 74.9, 75.2, 75.0]


def scores_file(room: Path, rows: Rows, name: str = "scores.csv") -> Path:
    return write(room, name, table({row: list(values) for row, values in rows.items()}))


def draw(mean: float, sd: float, count: int, number: int) -> list[float]:
    """Return runs whose mean and deviation are just these."""
    plain = np.random.default_rng(number).standard_normal(count)
    unit = (plain - plain.mean()) / plain.std(ddof=1)
    return [round(float(mean + sd * one), 4) for one in unit]


# -------------------------------------------------------------------------------------------- gate


@point("h")
def labels_used_again(folder: Path, room: Path) -> Iterator[Finding]:
    """A label that is used again for other runs is another proposal."""

    def ask(workdir: Path, rows: Rows) -> dict[str, Any]:
        file = scores_file(workdir, rows)
        data: dict[str, Any] = harness.gate(file, baseline="old", candidate="new").data
        return data

    more = [*BETTER, 82.3, 82.1]
    cases: dict[str, tuple[Rows, str, int]] = {
        "other runs, worse": ({"old": OLD, "new": WORSE}, "not better", 2),
        "another baseline, above": (
            {"old": [90.0, 90.1, 90.2, 90.3, 90.1], "new": BETTER},
            "not better",
            2,
        ),
        "one run is another": ({"old": OLD, "new": [*BETTER[:4], 75.0]}, "", 2),
        "the same runs": ({"old": OLD, "new": BETTER}, "better", 1),
        "the same runs in another order": ({"old": OLD[::-1], "new": BETTER}, "better", 0),
        "the same runs and two more": ({"old": OLD, "new": more}, "better", 1),
    }
    for name, (rows, decision, proposals) in cases.items():
        place = room / name.replace(" ", "-")
        first = ask(place, {"old": OLD, "new": BETTER})
        then = ask(place, rows)
        seen = f"{then['decision']}, {then['gain']:+.2f} points, proposal {then['proposal']}"
        ok = first["decision"] == "better" and decision in ("", then["decision"])
        ok = ok and proposals in (0, then["proposals"])
        expected = f"{decision or 'judged anew'}, {proposals or 'any'} proposals"
        yield Finding(name, expected, seen, ok)


# ----------------------------------------------------------------------------------------- spreads


@point("i")
def spreads(folder: Path, room: Path) -> Iterator[Finding]:
    """Rows of many seeds are judged by their own spreads, as Welch's test judges them."""
    a = draw(76.5, 0.21, 50, 1)
    b = draw(76.0, 0.84, 50, 2)
    others: dict[str, Rows] = {
        "two rows of 50 seeds": {},
        "beside two rows of 50 that vary much": {
            "c": draw(75, 1.74, 50, 3),
            "d": draw(74, 0.5, 50, 4),
        },
        "beside rows of three seeds": {"c": [75.1, 75.9, 74.2], "d": [70.2, 70.1, 70.4]},
        "beside a row that hardly varies": {"c": draw(70, 0.001, 3, 5)},
    }
    welch = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    for name, more in others.items():
        file = scores_file(room, {"a": a, "b": b, **more})
        found = harness.verdict(file, "a", "b").data
        pairs = (2 + len(more)) * (1 + len(more)) / 2
        level = 1 - 0.05 / pairs  # Bonferroni's, which is wider than the family's own
        wide = stats.ttest_ind(a, b, equal_var=False).confidence_interval(level)
        half = (found["high"] - found["low"]) / 2
        least = (welch.high - welch.low) / 2
        most = (wide.high - wide.low) / 2
        ok = found["verdict"] == "better" and 0.95 * least <= half <= 1.2 * most
        expected = f"better, half width {least:.2f} to {most:.2f}"
        yield Finding(name, expected, f"{found['verdict']}, half width {half:.2f}", ok)
    calm = {"a": draw(77.0, 0.5, 3, 6), "b": draw(73.0, 0.5, 3, 7), "c": draw(70.0, 0.5, 3, 8)}
    widths = []
    for last in (draw(60, 0.5, 3, 9), draw(60, 0.0001, 3, 9)):
        found = harness.verdict(scores_file(room, {**calm, "d": last}), "a", "b").data
        widths.append(found["high"] - found["low"])
    ratio = widths[1] / widths[0]
    yield Finding(
        "one other row hardly varies", "at most 1.3 times as wide", f"{ratio:.2f}", ratio < 1.3
    )


# ------------------------------------------------------------------------------------------- ties


def answers(rows: Mapping[str, Sequence[int]], seeds: int) -> str:
    """Return right and wrong answers of `seeds` equal runs, of which each row has so many right."""
    lines = ["row,seed,task,example,score,metric"]
    for row, right in rows.items():
        for seed in range(1, seeds + 1):
            lines += [f"{row},{seed},T,{n},{one},accuracy" for n, one in enumerate(right)]
    return "\n".join(lines) + "\n"


@point("j")
def ties_and_few(folder: Path, room: Path) -> Iterator[Finding]:
    """Seeds that tie, two seeds and few examples are no certainty."""
    for right, count in ((56, 60), (50, 60), (9, 10)):
        by_row = {
            "a": [1] * right + [0] * (count - right),
            "b": [1] * (right - 4) + [0] * (count - right + 4),
        }
        found = harness.verdict(write(room, "ties.csv", answers(by_row, 3)), "a", "b").data
        exact = stats.binomtest(0, 4).pvalue  # McNemar's exact test: 4 answers differ, all one way
        ok = found["p"] >= 0.5 * exact
        yield Finding(
            f"{right} and {right - 4} of {count}, three times",
            f"p about {exact:.3f}",
            f"p = {found['p']:.3g}",
            ok,
        )
    for name, rows in {
        "three equal runs each": {"a": [80.11] * 3, "b": [80.02] * 3},
        "two runs each": {"a": [80.1, 80.2], "b": [79.6, 79.7]},
        "two equal runs each": {"a": [80.1, 80.1], "b": [79.6, 79.6]},
    }.items():
        found = harness.verdict(scores_file(room, rows), "a", "b").data
        p = found["p"]
        ok = found["verdict"] not in ("better", "worse") and (p is None or p > 0.001)
        yield Finding(name, "not decided", f"{found['verdict']}, p = {p}", ok)
    single = {"a": [81.1, 81.2, 81.3], "b": [70.1, 70.2, 70.3], "c": [75.5], "d": [60.0]}
    found = harness.verdict(scores_file(room, single), "a", "b").data
    ok = found["seeds"] == [3, 3] and found["verdict"] == "better"
    yield Finding(
        "rows of one run beside",
        "better, 3 seeds each",
        f"{found['verdict']}, {found['seeds']}",
        ok,
    )
    few = np.random.default_rng(5)
    wrong = 0
    for number in range(200):
        texts = ["row,example,score,metric"]
        for row in "ab":
            texts += [f"{row},{n},{x:.4f},accuracy" for n, x in enumerate(few.uniform(0, 1, 5))]
        found = harness.verdict(
            write(room, f"few{number}.csv", "\n".join(texts) + "\n"), "a", "b"
        ).data
        wrong += found["verdict"] in ("better", "worse")
    yield Finding(
        "two models that are equal, five examples",
        "<= 9 % called different",
        f"{wrong / 2:.1f} %",
        wrong <= 18,
    )


# ------------------------------------------------------------------------------------------- plans


PLAN = """\
name = "planned"
seeds = {seeds}
suites = ["{task}"]
baseline = "{baseline}"
methods = [
  {{ method = "random", name = "small", config = {{ dimension = 8 }} }},
  {{ method = "random", name = "large", config = {{ dimension = 64 }} }},
]
"""


@point("k")
def words_of_plans(folder: Path, room: Path) -> Iterator[Finding]:
    """The words "as planned" need a frozen plan that was followed."""
    first = {"seeds": "[1, 2, 3]", "baseline": "small", "task": TASK}
    cases: dict[str, tuple[bool, dict[str, str], str]] = {
        "no frozen plan": (False, {}, "not frozen"),
        "a plan that was followed": (True, {}, "As planned"),
        "another baseline": (True, {"baseline": "large"}, "Not as planned"),
        "a seed is another": (True, {"seeds": "[1, 2, 4]"}, "Not as planned"),
        "a seed more": (True, {"seeds": "[1, 2, 3, 4]"}, "Not as planned"),
    }
    for name, (frozen, change, words) in cases.items():
        place = room / name.replace(" ", "-")
        workdir = str(place / "work")
        file = write(place, "planned.toml", PLAN.format(**first))
        if frozen:
            ended = forked.run(["compare", str(file), "--freeze", "--workdir", workdir])
            assert ended.code == 0, ended.err
        file.write_text(PLAN.format(**{**first, **change}))
        dry = forked.run(["compare", str(file), "--dry-run", "--workdir", workdir])
        command = ["compare", str(file), "--workdir", workdir, "--quiet", "--format", "md"]
        ended = forked.run([*command, "--tracking-uri", "none"])
        report = (place / "work/reports/planned/report.md").read_text()
        said = next(
            (word for word in ("Not as planned", "As planned", "not frozen") if word in report), ""
        )
        warned = "differs from plan" in " ".join((dry.out + dry.err).split())
        ok = ended.code == 0 and said == words and warned == bool(frozen and change)
        if name == "a seed is another":
            ok = (
                ok
                and "seed 3" in report.replace("seeds", "seed")
                and "seed 4" in report.replace("seeds", "seed")
            )
        yield Finding(
            name, f'"{words}", dry run warns: {bool(frozen and change)}', f'"{said}", {warned}', ok
        )


# -------------------------------------------------------------------------------- rows of definitions


DEFINITION = """\
title = "My paper"
published = "mine.csv"
{names}
[bases]
small = ["{base}"]

[[columns.sts]]
title = "Pairs"
published = "Pairs"
score = "{task} spearman all"

[[tables]]
key = "table-1"
title = "Table 1"
published = ["Table 1"]
columns = "sts"
rows = [{{ label = "ours", published = ["Ours"], method = "pooling"{where} }}]
"""
PUBLISHED = """paper,table,model,base_model,task,metric,value,source_mark,notes
Some 2020,Table 1,Ours,small,Pairs,spearman,50.00,,
"""


@point("l")
def rows_of_definitions(folder: Path, room: Path) -> Iterator[Finding]:
    workdir = room / "work"
    compare(workdir, MEAN, name="paper")
    compare(workdir, CLS, name="ablation")
    compare(workdir, MEAN, CLS, name="both")
    from harness.results.store import read_records

    truth = {record.row: 100 * (record.score(TASK) or 0) for record in read_records(workdir)}
    cases: dict[str, tuple[str, str, float | None]] = {
        "no comparison is named": ("", "", None),
        "the comparison of the paper": ('comparison = "paper"\n', "", truth["mean"]),
        "the comparison of the ablation": ('comparison = ["ablation"]\n', "", truth["cls"]),
        "one with two candidates": ('comparison = "both"\n', "", None),
        "two candidates, one meant": (
            'comparison = "both"\n',
            ', where = { pooling = "cls" }',
            truth["cls"],
        ),
    }
    write(room, "mine.csv", PUBLISHED)
    for name, (names, where, value) in cases.items():
        file = write(
            room,
            "mine.toml",
            DEFINITION.format(names=names, task=TASK, where=where, base=workdir.parent / "base"),
        )
        from reports.build import build_report

        seen: Any
        try:
            made = build_report(str(file), workdir, out=room / name, formats=("csv",))
            head, line = ((made["csv"] / "joined.csv").read_text().splitlines())[:2]
            seen = float(dict(zip(head.split(","), line.split(","), strict=False))["ours"])
        except InputError as error:
            seen = str(error)
        if value is None:
            ok = isinstance(seen, str) and "mean" in seen and "cls" in seen
            yield Finding(name, "refused, both candidates named", f"{seen}"[:200], ok)
        else:
            ok = isinstance(seen, float) and abs(seen - value) < 0.006
            yield Finding(name, f"{value:.2f}", f"{seen}"[:200], ok)


# --------------------------------------------------------------------------------------- headlines


def _harmed(name: str, **more: Any) -> dict[str, Any]:
    own: Any = SIMCSE["config"]
    config = {**own, "learning_rate": 0.003, "select": "last"}
    return {**SIMCSE, "name": name, "config": config, **more}


@point("o")
def headlines(folder: Path, room: Path) -> Iterator[Finding]:
    """The first sentence speaks of the rows that the table has."""
    long = "harmed, with a name that is as long as the names of real rows are when people explain"
    cases = {
        "one seed": ([_harmed("harmed"), _harmed(long)], [1]),
        "three seeds": ([_harmed("harmed")], [1, 2, 3]),
        "beside its own start": ([_harmed("harmed"), MEAN], [1]),
        "beside a better start": ([_harmed("harmed"), CLS, MEAN], [1]),
    }
    for name, (rows, seeds) in cases.items():
        workdir = room / name.replace(" ", "-")
        plan = {
            "name": "small",
            "seeds": seeds,
            "suites": ["Embedded-STS-natural"],
            "max_steps": 6,
            "corpus": {"uri": "embedded:sentences", "limit": 64},
            "dev": {"task": TASK},
            "methods": rows,
        }
        harness.compare(plan, workdir=workdir, tracking_uri="none", formats=["md"])
        yield _judge_headline(name, workdir)
    for file in sorted(folder.rglob("headline/worse.toml")):
        workdir = room / "reported"
        harness.compare(file, workdir=workdir, tracking_uri="none", formats=["md"], max_steps=6)
        yield _judge_headline("reported: worse.toml", workdir)


def _judge_headline(name: str, workdir: Path) -> Finding:
    from harness.results.store import read_records

    means: dict[str, list[float]] = {}
    for record in read_records(workdir):
        value = record.score("Embedded-STS-natural")
        if value is not None:
            means.setdefault(record.row, []).append(100 * value)
    best = max(means, key=lambda row: float(np.mean(means[row])))
    (report,) = workdir.glob("reports/*/data.json")
    text = (report.parent / "report.md").read_text()
    first = next(
        line for line in text.splitlines() if line and not line.startswith(("#", "<", "|"))
    )
    trained_is_best = best.startswith("harmed")
    no_gain = "Nothing that was trained is better than its untrained start" in text
    ok = trained_is_best or (
        no_gain and best in text and json.loads(report.read_text()) is not None
    )
    expected = f"{best} ({np.mean(means[best]):.2f}) is best; nothing that was trained is better"
    return Finding(name, expected, first[:200], ok)
