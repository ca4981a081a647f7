"""A model through our mteb adapter beside the same model through mteb's own wrapper: scores and seconds, one run.

    HF_ENDPOINT=... python tests/benchmarks/mteb_speed.py [--model sentence-transformers/all-MiniLM-L6-v2]
        [--tasks STS12,SciFact | --suite mteb-en-v1] [--batch-size 32] [--seconds 3000]

Every set of the suite that the hub has is scored by both, in turns; the others are listed. Both sides read the data
from the local cache (it is fetched before the clock starts) and pay for reading it. `--seconds` ends the run after the
set that is under way. The last lines are the largest difference and the ratio of the times: of all sets, and of the
seven STS sets that the papers use (`--tasks seven` runs these alone). Processor time stands beside wall time: it is the
fairer figure on a CPU that others use too. Wanted: scores equal to 0.01, and 1/1.3 of mteb's wall time on the seven.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

Outcome = tuple[float, float, float]  # score in percent, seconds, seconds of the processor
SEVEN = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R")


def available(names: list[str]) -> list[str]:
    """Those whose data is on the hub; it is downloaded."""
    from harness.errors import InputError
    from harness.tasks.mteb.adapter import open_task
    from harness.tasks.mteb.task import mteb_task

    offered, missing = [], []
    for name in names:
        try:
            mteb_task(name).texts()
            open_task(name).load_data()
            offered.append(name)
        except InputError:
            missing.append(name)
    print(f"{len(offered)} of {len(names)} on the hub; missing: {', '.join(missing) or 'none'}", flush=True)
    return offered


def theirs(model: Any, name: str, batch_size: int) -> float:
    """mteb's score."""
    import mteb

    from harness.tasks.mteb.adapter import open_task

    result = mteb.evaluate(
        model,
        open_task(name),
        cache=None,
        co2_tracker=False,
        encode_kwargs={"batch_size": batch_size, "show_progress_bar": False},
        show_progress_bar=False,
    ).task_results[0]
    return float(100 * result.get_score())


def ours(encoder: Any, name: str, batch_size: int) -> float:
    """Our score, nothing shared between tasks."""
    from harness.evaluation.scoring import evaluate
    from harness.tasks.mteb.task import mteb_task

    result = evaluate(lambda texts: encoder.encode(texts, batch_size=batch_size), [mteb_task(name)], pooling="as saved")
    return 100 * result.scores[0].value


def timed(side: Callable[[Any, str, int], float], model: Any, name: str, batch_size: int) -> Outcome:
    """The score of one side, and its seconds by the clock and of the processor."""
    wall, processor = time.perf_counter(), time.process_time()
    value = side(model, name, batch_size)
    return value, time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2", help="hub id or folder")
    parser.add_argument("--suite", default="mteb-en-v1")
    parser.add_argument("--tasks", default="", help="mteb names, comma-separated, or seven, in place of a suite")
    parser.add_argument("--batch-size", type=int, default=32, help="32 is mteb's default")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    args = parser.parse_args()

    import datasets
    from sentence_transformers import SentenceTransformer

    from harness.encoder.foreign import open_model
    from harness.encoder.quiet import quiet_transformers
    from harness.sources import resolve_model
    from harness.tasks.mteb.benchmarks import MTEB_SUITES, names_of

    warnings.simplefilter("ignore")  # the libraries' advice to each other
    datasets.disable_progress_bars()
    started = time.perf_counter()
    wanted = {"": names_of(MTEB_SUITES[args.suite]), "seven": SEVEN}.get(args.tasks) or args.tasks.split(",")
    names = available(list(wanted))
    with quiet_transformers():
        reference = SentenceTransformer(resolve_model(args.model), device="cpu")
        encoder = open_model(args.model)
    reference.encode(["warm up"] * 64)
    encoder.encode([f"warm up {i}" for i in range(64)])

    rows: dict[str, tuple[Outcome, Outcome]] = {}
    heads = ("mteb", "ours", "diff", "mteb s", "ours s", "ratio", "mteb cpu", "ours cpu", "ratio")
    print(f"{'task':<36} " + " ".join(f"{head:>8}" for head in heads))
    for turn, name in enumerate(names):
        if time.perf_counter() - started > args.seconds:
            print(f"out of time; not run: {', '.join(names[turn:])}")
            break
        if turn % 2:
            b = timed(ours, encoder, name, args.batch_size)
            a = timed(theirs, reference, name, args.batch_size)
        else:
            a = timed(theirs, reference, name, args.batch_size)
            b = timed(ours, encoder, name, args.batch_size)
        rows[name] = a, b
        times = " ".join(f"{a[i]:8.1f} {b[i]:8.1f} {a[i] / b[i]:8.2f}" for i in (1, 2))
        print(f"{name:<36} {a[0]:8.3f} {b[0]:8.3f} {b[0] - a[0]:8.4f} {times}", flush=True)

    if rows:
        print(f"largest difference: {max(abs(a[0] - b[0]) for a, b in rows.values()):.4f} (in percent)")
    for title, members in (("all sets", names), ("the seven STS sets", SEVEN)):
        chosen = [rows[name] for name in members if name in rows]
        for kind, column in (("wall", 1), ("processor", 2)) if chosen else ():
            total, own = (sum(pair[side][column] for pair in chosen) for side in (0, 1))
            print(f"{title}, {kind}: {len(chosen)} sets, mteb {total:.1f} s, ours {own:.1f} s, ratio {total / own:.2f}")


if __name__ == "__main__":
    main()
