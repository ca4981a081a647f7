"""Damages SentEval's files in many ways and reads them: each must give one line, or a remark about the file's size.

    python -m tests.campaigns.damaged_senteval

Prints a table by kind of damage: tried, held (an InputError that names a file; for a file cut at a line's end: a note),
fell (accepted without a word, or any other exception). Ends with 1 if anything fell. Takes a few seconds.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.errors import InputError
from harness.sources.senteval.labelled import read_probing, read_task
from harness.sources.senteval.similarity import read_sick, read_stsb, read_year
from harness.sources.senteval.sizes import SIZES, unusual_sizes
from tests.support.senteval_data import downstream, probing

Damage = Callable[[bytes], bytes]
Counts = dict[str, int]

YEAR = "STS/STS13-en-test/STS"
# task -> a file of it, and what a line's fields are separated by ("" where a line is one sentence, of any form)
FILES = {
    "MR": ("MR/rt-polarity.pos", ""),
    "CR": ("CR/custrev.neg", ""),
    "SST2": ("SST/binary/sentiment-dev", "\t"),
    "SST5": ("SST/fine/sentiment-test", " "),
    "TREC": ("TREC/train_5500.label", ":"),
    "MRPC": ("MRPC/msr_paraphrase_train.txt", "\t"),
    "SICK-E": ("SICK/SICK_test_annotated.txt", "\t"),
    "SICK-R": ("SICK/SICK_train.txt", "\t"),
    "STS-B": ("STS/STSBenchmark/sts-test.csv", "\t"),
    "SNLI": ("SNLI/s2.train", ""),
    "STS13": (f"{YEAR}.input.FNWN.txt", "\t"),
    "Tense": ("../probing/past_present.txt", "\t"),
}
GOLD = {
    "SICK-R": ("SICK/SICK_trial.txt", 3),
    "STS-B": ("STS/STSBenchmark/sts-dev.csv", 4),
    "STS13": (f"{YEAR}.gs.OnWN.txt", 0),
}
SCORES = ("nan", "inf", "-inf", "55", "-0.1", "5.001", "abc", "1_0", "0x1", "٣", "1e400", "3,5")


def on_line(number: int, change: Callable[[bytes], bytes]) -> Damage:
    """A damage of one line (from 0) alone."""

    def damage(raw: bytes) -> bytes:
        lines = raw.split(b"\n")
        lines[number] = change(lines[number])
        return b"\n".join(lines)

    return damage


def field(place: int, value: str) -> Damage:
    def change(line: bytes) -> bytes:
        fields = line.split(b"\t")
        fields[place] = value.encode()
        return b"\t".join(fields)

    return on_line(5, change)


def damages(separator: str) -> Iterator[tuple[str, Damage]]:
    """Damages of any file, and those of a file whose lines have a form."""
    yield "cut at a line's end", lambda raw: b"\n".join(raw.split(b"\n")[:9]) + b"\n"
    yield "empty", lambda raw: b""
    yield "UTF-16", lambda raw: raw.decode("latin-1").encode("utf-16")
    yield "UTF-16 without a mark", lambda raw: raw.decode("latin-1").encode("utf-16-be")
    yield "NUL byte", on_line(4, lambda line: line[:2] + b"\0" + line[2:])
    yield "lone carriage return", on_line(4, lambda line: line[:-3] + b"\r" + line[-3:])
    yield "carriage returns for line ends", lambda raw: raw.replace(b"\n", b"\r")
    if separator:
        mark = separator.encode()
        yield "cut within a line", lambda raw: raw[: raw.rstrip(b"\n").rfind(mark)]
        yield "field missing", on_line(3, lambda line: mark.join(line.split(mark)[:-1]))
        yield "two lines joined", on_line(3, lambda line: line.replace(mark, b"_"))
        yield "blank first field", on_line(3, lambda line: mark + line.split(mark, 1)[1])
    if separator == "\t":
        yield "field too many", on_line(3, lambda line: line + b"\tmore" * 3)
        yield "fields swapped", on_line(3, lambda line: b"\t".join(reversed(line.split(b"\t"))))
        yield "sentence missing", on_line(3, lambda line: b"\t".join([*line.split(b"\t")[:-1], b" "]))


def cases() -> Iterator[tuple[str, str, str, Damage]]:
    """Kind of damage, task, file and the damage."""
    for task, (file, separator) in FILES.items():
        for kind, damage in damages(separator):
            if task in ("STS13", "STS-B") and kind in ("blank first field", "fields swapped"):
                continue  # two sentences may stand in any order, and nothing is read of STS-B's first field
            if task == "SST5" and kind in ("cut within a line", "field missing"):
                continue  # its last word is missing then, which no reader can see
            yield kind, task, file, damage
    for task, (file, place) in GOLD.items():
        for score in SCORES:
            yield f"gold {score}", task, file, field(place, score)
    for task, file in (("MRPC", FILES["MRPC"][0]), ("SICK-E", FILES["SICK-E"][0])):
        yield "header missing", task, file, lambda raw: raw.split(b"\n", 1)[1]


def read(task: str, folder: Path) -> Counts:
    """All of a task, by every reader that it has; its sizes."""
    if task.startswith("STS1"):
        return {name: len(gold) for name, (_, _, gold) in read_year(folder, task)}
    data = read_probing(task, folder.parent / "probing") if task == "Tense" else read_task(task, folder)
    parts = data.parts
    for name, reader in (("STS-B", read_stsb), ("SICK-R", read_sick)):
        if task == name:
            assert [len(reader(folder, part)[2]) for part in parts] == [len(part) for part in parts.values()]
    return {name: len(part) for name, part in parts.items()}


def verdict(task: str, folder: Path) -> str:
    """ "" where the damage was told, else what happened."""
    try:
        counts = read(task, folder)
    except InputError as error:
        text = str(error)
        return "" if str(folder.parent) in text and "\n" not in text else f"told without a file: {text}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if unusual_sizes(task, counts) else f"accepted without a word: {counts}"


def main() -> int:
    tried, fell = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as made:
        root = downstream(Path(made), n=30)
        folder = root / "downstream"
        probing(
            root,
            "past_present.txt",
            {p: [(f"L{i % 2}", f"a sentence {i}") for i in range(30)] for p in ("tr", "va", "te")},
        )
        (folder / YEAR).parent.mkdir(parents=True)
        for subset in SIZES["STS13"]:
            (folder / f"{YEAR}.input.{subset}.txt").write_text("".join(f"one {i}\ttwo {i}\n" for i in range(30)))
            (folder / f"{YEAR}.gs.{subset}.txt").write_text("".join(f"{i % 6}\n" for i in range(30)))
        for task in FILES:  # sizes of these small files pass for the published ones
            SIZES[task] = read(task, folder)
        for kind, task, file, damage in cases():
            kept = folder / "kept"
            shutil.copy(folder / file, kept)
            (folder / file).write_bytes(damage(kept.read_bytes()))
            tried[kind] += 1
            if said := verdict(task, folder):
                fell[kind] += 1
                print(f"fell: {kind}, {task}, {file}: {said}")
            shutil.move(kept, folder / file)
    width = max(map(len, tried))
    print(f"{'damage':{width}}  tried  held  fell")
    for kind in tried:
        print(f"{kind:{width}}  {tried[kind]:5}  {tried[kind] - fell[kind]:4}  {fell[kind]:4}")
    print(f"{'all':{width}}  {tried.total():5}  {tried.total() - fell.total():4}  {fell.total():4}")
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
