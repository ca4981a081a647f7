"""Points on sentences that were false or misled, each with inputs that it has to be right for. Those
of one or two words are the sentences of docs/robustness.toml.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import harness
from harness.files.printable import width_of
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs.conditions import DevSettings
from tests.support import synthetic
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_scores import run_command, table, write

TASKS = ("STS12", "STS-B")
Rows = dict[str, list[object]]


def has(name: str, text: str, *words: str, lacks: tuple[str, ...] = ()) -> Finding:
    """Finding: a text has the words, and lacks others."""
    ok = all(word in text for word in words) and not any(word in text for word in lacks)
    expected = f"{', '.join(words)}{' without ' if lacks else ''}{', '.join(lacks)}"
    return Finding(name, expected, text[:400], ok)


def invented(place: Path, **rows: tuple[float, int]) -> synthetic.Invented:
    """Invent rows, each with its noise and number of seeds, that two tasks judge."""
    made = synthetic.Invented(place, scale=0.1)
    for row, (noise, seeds) in rows.items():
        for seed in range(1, seeds + 1):
            made.add(row, seed, noise=noise, tasks=TASKS, curves=False, geometry=False)
    return made


def headline_of(made: synthetic.Invented) -> str:
    from reports.comparison.headline import headline
    from reports.load import read_comparison
    from reports.stats.significance import Significance

    comparison = read_comparison(made.workdir, "invented")
    return " ".join(headline(comparison, Significance(comparison)))


def draw(mean: float, sd: float, count: int, number: int) -> list[object]:
    return [float(x) for x in np.random.default_rng(number).normal(mean, sd, count).round(2)]


# ------------------------------------------------------------------- what verdicts and gates say


@point("w-found")
def differences_that_can_be_found(folder: Path, room: Path) -> Iterator[Finding]:
    """The difference that is found in 80 % of cases is above half the interval of the pair."""
    calm = draw(75, 0.1, 5, 1)
    for name, rows in {
        "beside calm rows": {"a": draw(73, 3, 5, 2), "b": calm, "c": draw(76, 0.1, 5, 3)},
        "both vary": {"a": draw(70, 2, 4, 4), "b": draw(71, 2, 4, 5)},
        "of unequal spread": {"a": draw(70, 4, 6, 6), "b": draw(71, 0.2, 6, 7)},
        "of three seeds": {"a": draw(70, 1, 3, 8), "b": draw(71, 1, 3, 9)},
        "few of many rows": {f"{n}": draw(70 + n / 9, 1, 3, 10 + n) for n in range(12)},
    }.items():
        file = write(room, f"{name}.csv", table(rows))
        one, other = list(rows)[:2]
        found = harness.verdict(file, one, other).data
        least = re.search(r"differences of ([\d.]+) points", found["text"])
        half = (found["high"] - found["low"]) / 2
        seen = f"{least and least[1]}, half of the interval {half:.2f}"
        ok = least is not None and float(least[1]) > half
        yield Finding(name, "above half of the interval", seen, ok)


@point("w-marks")
def marks_where_nothing_was_tested(folder: Path, room: Path) -> Iterator[Finding]:
    """Below three seeds nothing is ranked or called best."""
    for name, counts, judged in (
        ("one seed", (1, 1), False),
        ("two seeds", (2, 2), False),
        ("one and four", (1, 4), False),
        ("two and four", (2, 4), False),
        ("two, two and nine", (2, 2, 9), False),
        ("three seeds", (3, 3), True),
        ("three, three and one", (3, 3, 1), True),
    ):
        rows = {f"r{n}": draw(70 + 3 * n, 0.2, count, n) for n, count in enumerate(counts)}
        found = harness.verdict(write(room, f"{name}.csv", table(rows)))
        ranked = any(rank is not None for rank in found.data[0]["ranks"].values())
        best = "best" in found.text
        seen = f"ranked {ranked}, best {best}: {found.text[:200]}"
        yield Finding(name, f"ranked {judged}", seen, ranked == judged and (judged or not best))


@point("w-q")
def corrected_p_values(folder: Path, room: Path) -> Iterator[Finding]:
    """Of one pair it is p, of all pairs of many rows q, which has its own promise."""
    promise = "of all pairs that are called different, at most 5%"
    for count, is_q in ((2, False), (10, False), (13, True), (20, True)):
        rows = {f"r{n}": draw(70 + n, 0.5, 4, n) for n in range(count)}
        file = write(room, f"{count}.csv", table(rows))
        text = harness.verdict(file, "r0", "r1").data["text"]
        if is_q:
            yield has(f"{count} rows", text, "; q ", promise, lacks=("; p ",))
        else:
            yield has(f"{count} rows", text, "; p ", lacks=("; q ", promise))


@point("w-gate")
def what_the_gate_promises(folder: Path, room: Path) -> Iterator[Finding]:
    """Every answer says that the rate of wrong ones is an expectation, of all that are accepted."""
    promise = "of all that are ever accepted, at most 5% are wrong in expectation"
    for name, mean, seeds in (("better", 73, 6), ("undecided", 70.9, 5), ("worse", 65, 6)):
        rows = {"a": draw(70, 0.5, seeds, 1), "b": draw(mean, 0.5, seeds, 2)}
        file = write(room, f"{name}.csv", table(rows))
        words = ["gate", "--baseline", "a", "--candidate", "b", "--scores", str(file)]
        code, text = run_command(*words, "--history", str(room / f"{name}.jsonl"))
        yield has(f"{name} ({code})", text, promise)


@point("w-limits")
def what_scores_hold_for(folder: Path, room: Path) -> Iterator[Finding]:
    """What is not known of scores is said, and nothing else."""
    examples = "row,seed,task,example,score\n" + "".join(
        f"{row},{seed},T,{n},{(n * 7 + seed + place) % 3 != 0:d}\n"
        for place, row in enumerate("ab")
        for seed in (1, 2, 3)
        for n in range(40)
    )
    seeds = table({"a": draw(70, 1, 3, 1), "b": draw(75, 1, 3, 2)})
    two = table({"a": draw(70, 1, 2, 1), "b": draw(75, 1, 2, 2)})
    none = "row,score\na,70\nb,71\n"
    alone = "so this holds for these test sets alone"
    for name, text, words, lacks in (
        ("seeds alone", seeds, (alone,), ("nothing can be concluded",)),
        ("seeds and examples", examples, (), (alone, "nothing can be concluded")),
        ("neither", none, ("nothing can be concluded",), ("so this holds",)),
        ("two runs", two, ("two runs",), ("1 seed each", "(one seed")),
    ):
        found = harness.verdict(write(room, f"{name}.csv", text), "a", "b")
        yield has(name, found.data["text"], *words, lacks=lacks)


@point("w-lower")
def scores_of_which_lower_is_better(folder: Path, room: Path) -> Iterator[Finding]:
    """The lower error wins, and the minus before it is explained."""
    lines = table({"a": [21.0, 21.2, 20.9], "b": [31.0, 31.3, 31.1]}).splitlines()
    for name, column, value in (
        ("perplexity", "metric", "perplexity"),
        ("an error rate", "metric", "wer"),
        ("as the table says", "lower_is_better", "true"),
        ("a mean squared error", "metric", "mse"),
    ):
        text = "\n".join([f"{lines[0]},{column}", *(f"{line},{value}" for line in lines[1:])])
        found = harness.verdict(write(room, f"{name}.csv", text + "\n"), "a", "b").data["text"]
        yield has(name, found, "a is better than b", "\u22122", "negative")


# ----------------------------------------------------------------------------- what reports say


@point("w-alone")
def comparisons_with_one_row(folder: Path, room: Path) -> Iterator[Finding]:
    """One row is said to be the only one, not to lack examples."""
    for name, seeds in {"one seed": 1, "three seeds": 3, "five seeds": 5}.items():
        made = invented(room / name, SimCSE=(1.0, seeds))
        text = headline_of(made)
        yield has(name, text, "is the only row", lacks=("stored the examples",))
    file = write(room, "one.csv", table({"a": draw(70, 1, 3, 1)}))
    _, text = run_command("verdict", "--scores", str(file))
    yield has("a file of scores", text, 'one row ("a")', lacks=("stored the examples",))


@point("w-lost")
def seeds_that_ended_without_a_score(folder: Path, room: Path) -> Iterator[Finding]:
    """Seeds that collapsed, diverged or failed are counted in the headline and the verdict."""
    for status in ("collapsed", "diverged", "failed"):
        made = invented(room / status, SimCSE=(0.5, 3), SCD=(2.0, 3))
        for seed in (4, 5):
            made.add("SCD", seed, status=status, reason="x", curves=False, geometry=False)
        yield has(f"headline: {status}", headline_of(made), "2 of 5 seeds of SCD", status)
        words = ["verdict", "SimCSE", "SCD", "--workdir", str(made.workdir)]
        yield has(f"verdict: {status}", run_command(*words)[1], "2 of 5 seeds of SCD", status)


@point("w-gain")
def dev_scores_that_do_not_rise(folder: Path, room: Path) -> Iterator[Finding]:
    """Runs without a gain are counted as such; the log says which weights were scored."""
    from harness.runs.grid import describe_record
    from reports.comparison.terminal_summary import summary_table

    def trained(made: synthetic.Invented, seed: int, best: float, step: int) -> Record:
        record = made.add("SimCSE", seed, tasks=("STS12",), curves=False, geometry=False)
        training = {"steps": 250, "best_step": step, "best_dev": best, "initial_dev": 0.52}
        changed = record.model_copy(update={"training": training})
        RunFolder(made.workdir, record.id).write(changed)
        return changed

    for name, runs, expected in (
        ("two of three", ((0.61, 200), (0.52, 0), (0.5, 150)), "no dev gain: 2 of 3"),
        ("one of two", ((0.61, 200), (0.4, 9)), "no dev gain: 1 of 2"),
        ("all", ((0.51, 200), (0.52, 0)), "no dev gain: 2 of 2"),
        ("none", ((0.53, 200), (0.6, 100)), ""),
    ):
        made = synthetic.Invented(room / name, scale=0.1)
        lines = [describe_record(trained(made, n, *run)) for n, run in enumerate(runs, 1)]
        columns, rows, _ = summary_table(made.workdir, "invented")
        status = rows[0][columns.index("Status")] if "Status" in columns else ""
        ok = expected in status and ("gain" in status) == bool(expected)
        for line, (best, step) in zip(lines, runs, strict=True):
            weights = "untrained weights" if step == 0 else "trained weights"
            ok = ok and ("never exceeded" in line) == (best <= 0.52)
            ok = ok and (best > 0.52 or weights in line)
        yield Finding(name, expected or "no word", f"{status} | {lines[-1][-160:]}", ok)


@point("w-families")
def errors_over_families(folder: Path, room: Path) -> Iterator[Finding]:
    """Where differences are judged in several families, the page says what that costs."""
    from reports.load import read_comparison
    from reports.stats.significance import Significance
    from reports.tables.limits import limits

    full = synthetic.full(room / "full", scale=0.05)
    small = invented(room / "small", SimCSE=(0.8, 3), SCD=(1.0, 3))
    few = invented(room / "few", SimCSE=(0.8, 1), SCD=(1.0, 1))
    for name, made, expected in (
        ("rows and starts", full, True),
        ("one family", small, False),
        ("one seed each", few, False),
    ):
        comparison = read_comparison(made.workdir, "invented")
        said = " ".join(limits(comparison, Significance(comparison)).items)
        seen = "some false difference" in said
        yield Finding(name, f"said: {expected}", f"{seen}: {said[:200]}", seen == expected)


@point("w-ways")
def which_way_is_better(folder: Path, room: Path) -> Iterator[Finding]:
    """A column of a task that is not installed is marked by its metric where that is known."""
    from reports.load import read_comparison
    from reports.tables.suites import other_tables

    for metric, known in (
        ("accuracy", True),
        ("spearman", True),
        ("cosine_spearman", True),
        ("ap", True),
        ("cost_of_calls", False),
        ("my_index", False),
    ):
        made = synthetic.Invented(room / metric, scale=0.1)
        for label, value in (("SimCSE", 0.5), ("SCD", 0.4)):
            record = made.add(label, 1, tasks=(), curves=False, geometry=False)
            made.extend(record, [synthetic.score("tickets", "tickets", "own", metric, value)])
        (found,) = other_tables(read_comparison(made.workdir, "invented"), None, shown=())
        marked = any(cell.rank == 1 for row in found.rows for cell in row.cells)
        said = any("which way is better" in text for text in found.legend)
        seen = f"marked {marked}, said {said}"
        yield Finding(metric, f"marked {known}", seen, marked == known and said != known)


@point("w-names")
def long_names_in_the_terminal(folder: Path, room: Path) -> Iterator[Finding]:
    """A long name is cut before a score is left out."""
    from reports.comparison.terminal_summary import summary_table

    for name, long in {
        "words": "a name that is as long as names are when people explain what they did ",
        "one word": "n" * 90,
        "wide signs": "\u65e5\u672c\u8a9e" * 30,
        "a path": "/home/somebody/experiments/of/last/year/and/this/one/model-final-",
    }.items():
        made = synthetic.Invented(room / name, scale=0.1)
        for label in (f"{long}x", f"{long}y", "short"):
            made.add(label, 1, tasks=("STS12", "STS13", "STS14"), curves=False, geometry=False)
        columns, rows, _ = summary_table(made.workdir, "invented")
        shown = [row[0] for row in rows]
        apart = len(set(shown)) == 3
        widest = max(map(width_of, shown)) + sum(len(column) + 3 for column in columns[1:])
        ok = columns[2:] == ["STS average", "STS12", "STS13", "STS14"] and apart and widest < 100
        yield Finding(name, "all scores, three names", f"{columns} {shown}"[:300], ok)


@point("w-reasons")
def reasons_of_failed_rows(folder: Path, room: Path) -> Iterator[Finding]:
    """Code that failed is quoted whole, or visibly cut."""
    from harness.method import own_line

    for name, body in {
        "several lines": 'int(\n        "x",\n        base=10,\n    )',
        "brackets in a text": 'int("(((" +\n        "x")',
        "a comprehension": '[\n        int(x)\n        for x in\n        "ab"\n    ]',
        "very long": 'int("x"' + "\n        ".join([".replace('x', 'y')"] * 30) + ")",
        "one line": 'int("x")',
    }.items():
        place = room / name.replace(" ", "_") / "own_code.py"
        text = f"class Own:\n  def fail(self):\n    {body}\n"
        write(place.parent, place.name, text)
        about = spec_from_file_location(f"own_{place.parent.name}", place)
        assert about is not None
        assert about.loader is not None
        module = module_from_spec(about)
        about.loader.exec_module(module)
        try:
            module.Own().fail()
        except ValueError as error:
            said = own_line(error, module.Own)
        closed = said.count("(") == said.count(")") or said.endswith("...)") or '"(((' in said
        ok = closed and "line" in said
        yield Finding(name, "closed, or cut with ...", said[-200:], ok)


@point("w-stop")
def status_after_a_stop(folder: Path, room: Path) -> Iterator[Finding]:
    """A stop that was requested is shown, not the time that was left."""
    from tools.campaigns.reported_faults import read_finished_state, write_running

    state = read_finished_state(room)
    now = time.time()
    cases: dict[str, dict[str, Any]] = {
        "a minute ago": {"stop_requested": now - 60},
        "just now": {"stop_requested": now},
        "on another machine": {"stop_requested": now - 9, "host": "gpu-17", "alive": now},
        "with hours left": {"stop_requested": now - 9, "remaining_seconds": 9999.0},
    }
    for name, changes in cases.items():
        start = psutil.Process().create_time() - psutil.boot_time()
        running = {"pid": os.getpid(), "process_start": start, "updated": now, "alive": now}
        write_running(room / name, state, **(running | changes))
        code, text = run_command("status", "--workdir", str(room / name))
        yield has(f"{name} ({code})", text, "stopping, as requested at", lacks=("left",))


@point("w-matters")
def settings_that_usually_matter(folder: Path, room: Path) -> Iterator[Finding]:
    """A difference that usually matters is marked, and has its reason."""
    from harness.runs.differences import find_differences

    values: dict[str, tuple[Any, Any]] = {
        "learning_rate": (3e-5, 1e-5),
        "bucket": (32, 1),
        "pooling": ("cls", "mean"),
        "steps": (100, 200),
    }
    for key, pair in values.items():
        rows = {
            (label, "bert"): [{"base_model": "bert", key: value}]
            for label, value in zip("ab", pair, strict=True)
        }
        found = find_differences(rows).marked
        seen = f"{[(one.key, one.why) for one in found]}"
        yield Finding(key, "marked, with a reason", seen, [one.key for one in found] == [key])


# ------------------------------------------------------------- units, starts and ends of commands

TASK = "Embedded-STS-contrast"
STUDY = """\
method = "{method}"
preset = "mini"
precision = "fp32"
steps = 1
corpus = {{ uri = "embedded:sentences", limit = 32 }}
suites = ["Embedded-STS-contrast"]
objective = "{objective}"
sampler = "grid"
dev = {{ task = "Embedded-STS-contrast" }}
config = {{ batch_size = 8, pooling = "{pooling}" }}
[space]
learning_rate = [{rate}]
"""
REHEARSAL = """\
name = "small"
seeds = [1]
suites = ["Embedded-STS-contrast"]
corpus = "embedded:sentences"
precision = "fp32"
dev = {{ task = "Embedded-STS-contrast" }}
rehearsal = {{ max_steps = 2, limit = 64 }}
methods = [
  {{ method = "pooling", config = {{ pooling = "mean" }} }},
  {{ method = "simcse", preset = "mini", config = {{ batch_size = 8, pooling = "mean", learning_rate = {rate} }} }},
{more}]
"""


@point("w-compression")
def scores_of_compressed_vectors(folder: Path, room: Path) -> Iterator[Finding]:
    """Scores of cut and quantised vectors are printed in the unit of those of whole ones."""
    pairs = "sentence1,sentence2,score\n" + "".join(
        f"A dog runs {n} miles.,A dog walks {n * n} miles.,{n % 5}\n" for n in range(40)
    )
    file = write(room, "pairs.csv", pairs)
    for name, suite in (
        ("an embedded task", f"compression:{TASK}"),
        ("a file", f"compression:{file}"),
        ("a suite", "embedded-compression"),
    ):
        command = ["evaluate", "embedded:mini-bert", "--suite", suite, "--quiet"]
        _, answer = run_command(*command, "--json")
        scores = json.loads(answer[answer.index("{") :])["scores"]
        _, text = run_command(*command)
        wrong = []
        for one in scores:
            value = f"{100 * one['value']:.2f}"
            lines = [line.split() for line in text.splitlines() if f" {one['metric']} " in line]
            if not any(value in line and one["task"] in line for line in lines):
                wrong.append(f"{one['task']} {one['metric']} {value}")
        cut = [one for one in scores if "_first_" in one["metric"]]
        ok = not wrong and bool(cut)
        yield Finding(name, f"{len(scores)} scores in percent", f"other: {wrong[:3]}", ok)


def _score_without_training(objective: str, pooling: str) -> float:
    """Return what the embedded model has on the dev set or the task without training."""
    if objective == "dev":
        untrained = harness.train("pooling", config={"pooling": pooling}, dev=None)
        dev = DevSettings(task=TASK).load()
        return dev.score(lambda texts: np.asarray(untrained.encode(texts)))
    scores = harness.evaluate("embedded:mini-bert", TASK, pooling=pooling).scores()
    return float(scores.query("metric == 'spearman'")["value"].iloc[0])


@point("w-untrained")
def starts_of_studies(folder: Path, room: Path) -> Iterator[Finding]:
    """A study says what its score is without training, as `harness evaluate` has it."""
    for name, method, objective, pooling, rate in (
        ("judged by a task", "simcse", TASK, "mean", 1e-12),
        ("judged by the dev set", "simcse", "dev", "mean", 1e-12),
        ("another pooling", "scd", TASK, "cls", 1e-12),
        ("a usual rate", "simcse", TASK, "mean", 1e-3),
    ):
        place = room / name
        words = {"method": method, "objective": objective, "pooling": pooling, "rate": rate}
        file = write(place, "search.toml", STUDY.format(**words))
        _, text = run_command("study", "run", str(file), "--workdir", str(place / "work"))
        value = _score_without_training(objective, pooling)
        expected = f"Without training the score is {100 * value:.2f}"
        yield has(name, text.replace("\n", " ")[-2000:], expected)


@point("w-rehearsal")
def ends_of_rehearsals(folder: Path, room: Path) -> Iterator[Finding]:
    """A rehearsal compares nothing, counts the rows that worked, and names the weights that were
    scored.
    """
    from harness.results.store import read_records

    lacking = '{ method = "pretrained", name = "theirs", config = { model = "nowhere/model" } },\n'
    for name, rate, more, rows in (
        ("a usual rate", 1e-3, "", "2 of 2"),
        ("a rate that is too high", 1.0, "", "1 of 2"),
        ("a row whose model is missing", 1e-3, lacking, "2 of 3"),
    ):
        place = room / name
        file = write(place, "small.toml", REHEARSAL.format(rate=rate, more=more))
        command = ["compare", str(file), "--rehearse", "--workdir", str(place / "work")]
        _, text = run_command(*command, "--tracking-uri", "none", "--format", "md")
        scores = {}
        for record in read_records(place / "work"):
            scores[record.row] = record.score(TASK)
        said = re.search(r"never exceeded [^\n]*?, (trained|untrained) weights", text)
        is_untrained = scores["simcse"] == scores["pooling"]
        ok = said is None or (said[1] == "untrained") == is_untrained
        yield Finding(f"{name}: weights", f"untrained: {is_untrained}", str(said and said[0]), ok)
        ending = f"The rehearsal worked for {rows} rows"
        lacks = ("stored the examples", "is best", "is better")
        yield has(f"{name}: end", text[-1500:], ending, "compare nothing", lacks=lacks)
