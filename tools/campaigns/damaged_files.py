"""Shows that files of a work directory that were swapped, flipped, cut or deleted are noticed, and
never a wrong score.

    python -m tools.campaigns.damaged_files [--digits 12] [--only PART_OF_A_NAME] [--cases N] [--seed 0]
        [--log FILE]

A small comparison is copied and damaged for each case. A case passes if `harness doctor`, a report
or the same comparison says so, if no report shows another score without a word on damage, and if
the comparison then repairs it: the scores of before, and nothing for the doctor to find but what
only a training would bring back. A saved model that was damaged must be refused in one line, or
give the scores of before.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.campaigns import forked
from tools.campaigns.counted import Log, add_sampling, sample, save_count

EXPERIMENT = """\
name = "campaign"
base_models = ["embedded:mini-bert"]
seeds = [1, 2]
suites = ["Embedded-STS-contrast", "geometry:Embedded-STS-contrast"]
max_steps = 4
precision = "fp32"
device = "cpu"
corpus = { uri = "embedded:sentences", limit = 64 }
dev = { task = "Embedded-STS-contrast" }
methods = [
    { method = "pooling", config = { pooling = "cls" } },
    { method = "simcse", preset = "mini", config = { batch_size = 8, eval_every = 2, train_length = 12 } },
]
"""
SAID = "damaged|not as it was written|missing|is no|no comparison|cannot be read"
Change = Callable[[Path], None]
Draw = Callable[[str], random.Random]  # of a case: each draws the same whatever else is tried


def digit(file: Path, rng: random.Random) -> None:
    """Put another digit in place of one."""
    content = bytearray(file.read_bytes())
    place = rng.choice([at for at, byte in enumerate(content) if chr(byte).isdigit()])
    content[place] = ord(rng.choice([d for d in "0123456789" if ord(d) != content[place]]))
    file.write_bytes(content)


def flip(file: Path) -> None:
    """Flip a bit in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)


def cut_in_half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def folder_instead(file: Path) -> None:
    file.unlink()
    file.mkdir()


def link_to_itself(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def swap_words(file: Path) -> None:
    """Swap two words of a tokenizer."""
    tree = json.loads(file.read_text())
    words = tree["model"]["vocab"]
    place = words["the"]
    words["the"] = words["of"]
    words["of"] = place
    file.write_text(json.dumps(tree))


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def cases(digits: int, draw: Draw) -> Iterator[tuple[str, Change]]:
    """Yield the name of a damage and the function that does it to a copy of the work directory."""
    whole: dict[str, Change] = {
        "flipped": flip,
        "cut": cut_in_half,
        "deleted": Path.unlink,
        "a folder": folder_instead,
        "a link to itself": link_to_itself,
        "empty": empty,
    }
    for number in range(digits):
        name = f"record: digit {number}"
        yield (
            name,
            lambda w, name=name: digit(trained_runs(w)[0] / "record.json", draw(name)),
        )
        if number % 3 == 0:
            name = f"comparison: digit {number}"
            yield (
                name,
                lambda w, name=name: digit(w / "comparisons" / "campaign.json", draw(name)),
            )
    for name in (
        "record.json",
        "examples.parquet",
        "details.json",
        "curves.jsonl",
        "model/model.safetensors",
    ):
        for how, change in whole.items():
            yield (
                f"{name}: {how}",
                lambda w, name=name, change=change: change(trained_runs(w)[0] / name),
            )
        yield (
            f"{name}: swapped",
            lambda w, name=name: swap(*(run / name for run in trained_runs(w))),
        )
    for name in ("config.json", "tokenizer.json", "harness_method.json"):
        yield (
            f"{name}: digit",
            lambda w, name=name: digit(trained_runs(w)[0] / "model" / name, draw(name)),
        )
    yield "model: swapped", lambda w: swap(*(run / "model" for run in trained_runs(w)))
    yield "run folders of two seeds: swapped", lambda w: swap(*trained_runs(w))
    yield (
        "run folders of two rows: swapped",
        lambda w: swap(trained_runs(w)[0], untrained_runs(w)[0]),
    )
    yield (
        "records of two rows: swapped",
        lambda w: swap(*(f[0] / "record.json" for f in (trained_runs(w), untrained_runs(w)))),
    )
    for how, change in whole.items():
        yield (
            f"comparison: {how}",
            lambda w, change=change: change(w / "comparisons" / "campaign.json"),
        )
        yield f"measurements: {how}", lambda w, change=change: change(w / "measurements.json")
        yield f"vectors: {how}", lambda w, change=change: change(vectors_to_read(w)[0])
    yield "vectors of two models: swapped", lambda w: swap(*vectors_to_read(w)[:2])
    yield (
        "vectors of all models: swapped",
        lambda w: swap(*(file.parent for file in vectors_to_read(w)[:2])),
    )


def trained_runs(work: Path) -> list[Path]:
    return sorted(folder.parent for folder in work.glob("runs/*/model"))


def untrained_runs(work: Path) -> list[Path]:
    return sorted(folder for folder in work.glob("runs/*") if not (folder / "model").exists())


def vectors_to_read(work: Path) -> list[Path]:
    """Delete the examples, and return the stored vectors, which the next comparison reads."""
    for run in trained_runs(work):
        (run / "examples.parquet").unlink()
    return sorted(work.glob("cache/embeddings/*/*.safetensors"))


def rows(text: str) -> list[str]:
    """Return the lines of tables with scores, without times."""
    scores: list[str] = []
    for line in text.splitlines():
        is_time = re.search(r"\d s\b|MB", line)
        if re.search(r"\d\d\.\d\d", line) and not is_time:
            scores.append(line)
    return scores


def fault_of(change: Change, work: Path, compare: list[str], truth: tuple[str, str]) -> str:
    """Damage the work directory; return what is wrong with what commands make of it, or ""."""
    place = ["--workdir", str(work)]
    change(work)
    doctor = forked.run(["doctor", *place])
    report = forked.run(["report", "build", "campaign", "--format", "md", *place])
    shown = ""
    if report.code == 0:
        shown = (work / "reports" / "campaign" / "report.md").read_text()
    again = forked.run([*compare, *place])
    after = forked.run(["doctor", *place])
    for ended in (doctor, report, again, after):
        fault = ended.fault()
        if not fault and ended.code and ended.err.count("\n") > 1:
            fault = "several lines"
        if fault:
            return f"{fault}: {ended.err}"

    doctor_notices = bool(re.search(SAID, doctor.out))
    report_notices = bool(re.search(SAID, shown + report.err))
    comparison_notices = bool(re.search(SAID, again.err))
    if shown and rows(shown) != rows(truth[1]) and not report_notices:
        return "the report shows another score without a word"
    if again.code == 0 and rows(again.out) != rows(truth[0]):
        return f"the comparison shows another score: {again.out}"
    if not (doctor_notices or report_notices or comparison_notices):
        return "not noticed"
    # Only a training would help.
    lasting = re.search("what is left of the training curve|trains it again", after.out)
    if again.code or (after.code and not lasting):
        return f"not repaired: {after.out}{again.err}"
    return ""


def models(work: Path, draw: Draw) -> Iterator[tuple[str, Change]]:
    """Yield the name of a damage and the function that does it to a saved model."""
    yield "weights flipped", lambda m: flip(m / "model.safetensors")
    yield (
        "weights of another",
        lambda m: shutil.copy(trained_runs(work)[1] / "model" / "model.safetensors", m) and None,
    )
    yield "weights cut", lambda m: cut_in_half(m / "model.safetensors")
    yield "weights deleted", lambda m: (m / "model.safetensors").unlink()
    for name in ("config.json", "tokenizer.json", "harness_method.json", "1_Pooling/config.json"):
        for number in range(3):
            rng = draw(f"{name} {number}")
            yield f"a digit of {name}, {number}", lambda m, name=name, rng=rng: digit(m / name, rng)
    yield "words of the tokenizer swapped", lambda m: swap_words(m / "tokenizer.json")


def main() -> int:
    """Prints the failures and the counts; exit code 1 where a case failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--digits", type=int, default=12)
    parser.add_argument("--only", default="", help="cases with this in their name")
    add_sampling(parser)
    args = parser.parse_args()
    started = time.monotonic()
    log = Log(args.log)
    with tempfile.TemporaryDirectory() as name, forked.nothing_drawn():
        folder = Path(name).resolve()
        file = folder / "campaign.toml"
        sound = folder / "sound"
        work = folder / "work"
        model = folder / "model"
        file.write_text(EXPERIMENT)
        compare = ["compare", str(file), "--tracking-uri", "none", "--quiet", "--format", "md"]
        evaluate = ["evaluate", str(model), "--suite", "Embedded-STS-contrast", "--device", "cpu"]
        first = forked.import_what_is_used_by([*compare, "--workdir", str(sound)])[0]
        assert first.code == 0, first
        truth = first.out, (sound / "reports" / "campaign" / "report.md").read_text()
        shutil.rmtree(sound / "reports")
        shutil.copytree(trained_runs(sound)[0] / "model", model)
        scores = rows(forked.run(evaluate).out)

        def check_model(change: Change) -> str:
            shutil.rmtree(model)
            shutil.copytree(trained_runs(sound)[0] / "model", model)
            change(model)
            ended = forked.run(evaluate)
            wrong = ended.code == 0 and rows(ended.out) != scores
            if fault := ended.fault((0, 2)):
                return fault
            return "another score without a word" if wrong else ""

        def check_workdir(change: Change) -> str:
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(sound, work)
            return fault_of(change, work, compare, truth)

        def draw(what: str) -> random.Random:
            return random.Random(f"{args.seed} {what}")

        known = [(what, check_workdir, change) for what, change in cases(args.digits, draw)]
        known += [(f"model: {what}", check_model, change) for what, change in models(sound, draw)]
        named = [case for case in known if args.only in case[0]]
        for what, check, change in sample(named, args.cases, args.seed):
            if what not in log:
                log.add(what, check(change))
    tried, failed = log.count(what for what, *_ in named)
    if not args.only:
        save_count("damaged_files", tried, failed, known=len(known))
    print(
        f"tried {tried}, passed {tried - failed}, failed {failed}, {time.monotonic() - started:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
