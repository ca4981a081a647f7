"""Points on scores that others made: scales, names and seeds (e), the contract of an entry (m), and
damaged files (scores).
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from harness.cli import main
from tools.campaigns.reported import Finding, point


def run_command(*arguments: str) -> tuple[object, str]:
    """Return exit code and output of a command; of a traceback its last line."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            code: object = main(list(arguments))
        except SystemExit as error:
            code = error.code
        except BaseException as error:
            return "traceback", f"{type(error).__name__}: {error}"[:200]
    return code, output.getvalue().strip()


def is_refused(name: str, source: Path | list[Path], *words: str) -> Finding:
    """Finding: the source ends with exit code 2 and one line that holds the words."""
    sources = source if isinstance(source, list) else [source]
    arguments = [argument for one in sources for argument in ("--scores", str(one))]
    code, text = run_command("verdict", *arguments)
    ok = code == 2 and "\n" not in text and all(word in text for word in words)
    return Finding(name, f"exit 2, one line with {words}", f"exit {code}: {text[-300:]}", ok)


def has_means(name: str, source: Any, means: dict[str, float], note: str = "") -> Finding:
    """Finding: these means of rows, in points, and a note that holds `note`."""
    import harness

    expected = f"{means} {note}"
    try:
        blocks = harness.verdict(source).data
    except Exception as error:
        return Finding(name, expected, f"{type(error).__name__}: {error}"[:300], ok=False)
    seen: dict[str, float] = {}
    said = ""
    for pair in blocks[0]["pairs"]:
        seen |= {pair["a"]: pair["means"][0], pair["b"]: pair["means"][1]}
        said = pair["text"]
    same = seen.keys() == means.keys() and all(abs(seen[r] - means[r]) < 0.01 for r in means)
    return Finding(name, expected, f"{seen} {said[-200:]}", same and note in said)


def of_folder(folder: Path, name: str, make: Callable[[Path], Finding]) -> Iterator[Finding]:
    """Yield the case of each input of that name below a folder."""
    for file in sorted(folder.rglob(name)):
        yield make(file)


def write(room: Path, name: str, content: str | bytes) -> Path:
    file = room / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def table(rows: Mapping[str, Sequence[object]], task: str = "T", header: bool = True) -> str:
    """Return a CSV with a run for each score."""
    lines = ["row,seed,task,score"] if header else []
    for row, scores in rows.items():
        lines += [f"{row},{seed},{task},{score}" for seed, score in enumerate(scores, 1)]
    return "\n".join(lines) + "\n"


@point("e")
def scales_names_and_seeds(folder: Path, room: Path) -> Iterator[Finding]:
    yield from of_folder(
        folder,
        "mixed_scale.csv",
        lambda file: is_refused("one row in fractions", file, "beta", "acme", "line 8", "line 2"),
    )
    yield from of_folder(
        folder,
        "01-two-scales/scores.csv",
        lambda file: has_means(
            "a task in fractions, one in percent", file, {"new": 80.56, "old": 79.11}
        ),
    )
    yield from of_folder(
        folder,
        "08-blank-at-the-end-of-a-name/scores.csv",
        lambda file: has_means("a blank after a name", file, {"new": 81.5, "old": 80.1}),
    )
    yield from of_folder(
        folder,
        "04-row-called-None/scores.csv",
        lambda file: has_means("a row called None", file, {"None": 79.37, "EDA": 80.57}),
    )
    yield from of_folder(
        folder, "10-line-numbers/scores.csv", lambda file: is_refused("blank lines", file, "line 9")
    )

    good = {"b": [70.11, 70.21, 70.31]}
    for name, odd in (
        ("a run in fractions", [81.2, 0.812, 81.3]),
        ("a factor of 16", [0.95, 0.96, 0.94]),
        ("negative fractions", [-0.4, -0.3, -0.2]),
    ):
        rows = (
            {"a": list(odd), **good}
            if name != "a factor of 16"
            else {"a": list(odd), "b": [15, 16, 17]}
        )
        file = write(room, "scale.csv", table(rows))  # type: ignore[arg-type]
        yield is_refused(name, file, "row a", "row b" if name != "a run in fractions" else "row")
    one = write(room, "one.csv", table({"a": [0.81, 0.82, 0.83]}))
    two = write(room, "two.csv", table(good))
    means = {"a": 82.0, "b": 70.21}
    yield has_means(
        "two files, each of one scale", [one, two], means, "one.csv: scores read as 0 to 1"
    )
    examples = "row,task,example,score\n" + "".join(
        f"{row},T,{n},{right * (n % 2)}\n"
        for row, right in (("a", 1), ("b", 100))
        for n in range(20)
    )
    yield is_refused(
        "examples of 0/1 and 0/100", write(room, "examples.csv", examples), "row a", "row b"
    )
    yield has_means(
        "fractions of all rows, negative ones too",
        write(room, "plain.csv", table({"a": [-0.1, -0.1, -0.1], "b": [0.5, 0.5, 0.5]})),
        {"a": -10.0, "b": 50.0},
    )

    for name, other in (
        ("no-break space", "a\u00a0"),
        ("zero width", "a\u200b"),
        ("tab", "\ta"),
        ("byte-order mark", "\ufeffa"),
        ("soft hyphen", "a\u00ad"),
    ):
        text = table({"a": [81.11, 81.21]}) + f"{other},3,T,81.31\n" + table(good, header=False)
        yield has_means(
            f"name with {name}", write(room, "names.csv", text), {"a": 81.21, "b": 70.21}
        )
    decomposed = table({"caf\u00e9": [81.1]}) + "cafe\u0301,2,T,81.3\n" + table(good, header=False)
    yield has_means(
        "accent in two forms", write(room, "nfc.csv", decomposed), {"caf\u00e9": 81.2, "b": 70.21}
    )
    for word in ("null", "NA", "nan", "None", "NULL", "#N/A", "inf"):
        named = table({word: [81.1, 81.2, 81.3], **good})
        yield has_means(f"row {word}", write(room, "words.csv", named), {word: 81.2, "b": 70.21})
        scored = table({"a": [81.1, word, 81.3], **good})
        yield is_refused(f"score {word}", write(room, "values.csv", scored), "line 3", word)
    for again in ("1.0", "01", "+1", " 1", "1.00"):
        text = table({"a": [81.1]}) + f"a,{again},T,81.2\n" + table(good, header=False)
        yield is_refused(
            f'seeds "1" and "{again}"', write(room, "seeds.csv", text), "line 2", "line 3"
        )
    frame = pd.DataFrame(
        {"row": ["a", "a", "b", None], "score": [1, 2, 3, 4], "seed": [1, 2, 1, 1]}
    )
    yield is_refused("a missing name in Parquet", _parquet(room, frame), "4")

    text = table({"a": [81.1, 81.2, 81.3], **good})
    means = {"a": 81.2, "b": 70.21}
    packed = write(room, "scores.csv.gz", gzip.compress(text.encode()))
    yield has_means("packed", packed, means)
    yield has_means("semicolons", write(room, "semicolons.csv", text.replace(",", ";")), means)
    yield has_means(
        "tabs, an ending in capitals", write(room, "TABS.TSV", text.replace(",", "\t")), means
    )
    yield has_means(
        "byte-order mark, \\r\\n",
        write(room, "bom.csv", "\ufeff" + text.replace("\n", "\r\n")),
        means,
    )
    yield has_means(
        "first line sep=;", write(room, "sep.csv", "sep=;\n" + text.replace(",", ";")), means
    )
    yield has_means(
        "empty cells at the end", write(room, "ends.csv", text.replace("\n", ",,\n")), means
    )
    quoted = text.replace("a,", '"a, ""big""", ')
    yield has_means(
        "quotes, blanks after commas",
        write(room, "quotes.csv", quoted),
        {'a, "big"': 81.2, "b": 70.21},
    )
    lines = [
        {"row": f"{row}\u2028x", "seed": n, "score": x}
        for row, x in (("a", 81), ("b", 70))
        for n in range(3)
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    yield has_means(
        "JSON lines with U+2028", write(room, "lines.jsonl", text), {"a x": 81.0, "b x": 70.0}
    )
    yield is_refused(
        "Latin-1",
        write(room, "latin.csv", "row,score\nä,1\nb,2\n".encode("latin-1")),
        "line 2",
        "UTF-8",
    )
    yield is_refused(
        "UTF-16", write(room, "utf16.csv", "row,score\na,1\n".encode("utf-16")), "UTF-16"
    )
    yield is_refused(
        "a quote that is not closed", write(room, "open.csv", 'row,score\n"a,1\nb,2\n'), "quote"
    )
    yield is_refused(
        "a cell too many", write(room, "cells.csv", "row,score\na,1,2\nb,2\n"), "line 2"
    )


def _parquet(room: Path, frame: pd.DataFrame, name: str = "frame.parquet") -> Path:
    frame.to_parquet(room / name)
    return room / name


def mteb_result(
    room: Path, row: str, task: str = "STS12", score: object = 0.7, **changes: Any
) -> Path:
    """Write a result file of mteb."""
    part = {
        "cosine_spearman": 0.7,
        "cosine_pearson": 0.6,
        "main_score": score,
        "hf_subset": "default",
    }
    tree = {
        "task_name": task,
        "dataset_revision": "r1",
        "mteb_version": "2.26.1",
        "scores": {changes.pop("split", "test"): [part | changes.pop("part", {})]},
        **changes,
    }
    return write(room, f"{row}/{changes.pop('at', 'revision')}/{task}.json", json.dumps(tree))


@point("m")
def contract_of_an_entry(folder: Path, room: Path) -> Iterator[Finding]:
    for source in sorted(folder.rglob("mteb/scale")):
        yield is_refused("a main score of 5.3", source, "5.3", "labmax", "main_score")
    for source in sorted(folder.rglob("mteb/split")):
        yield is_refused("dev beside test", source, "dev", "test", "labmax")
    yield from of_folder(
        folder,
        "all-scores.csv",
        lambda file: Finding("all-scores.csv of a report", "exit 0", *_exit_of(file)),
    )
    for name, words in (
        ("wide.csv", ('"row"', "melt")),
        ("scores/scores.csv", ('"system" to "row"',)),
    ):
        for file in sorted(folder.rglob(name)):
            yield is_refused(name, file, *words)

    for name, changes, words in (
        ("validation beside test", {"split": "validation"}, ("validation", "test")),
        ("another revision", {"dataset_revision": "deadbeef"}, ("deadbeef", "r1")),
        ("the main score is Pearson", {"score": 0.6}, ("cosine_pearson",)),
        ("other subsets", {"part": {"hf_subset": "de"}}, ("de",)),
        ("minus 2", {"score": -2}, ("-2",)),
        ("a score of True", {"score": True}, ("True",)),
    ):
        place = room / name
        mteb_result(place, "org__a")
        mteb_result(place, "org__b", **changes)
        yield is_refused(name, place, "org__b", *words)
    place = room / "versions"
    mteb_result(place, "org__a")
    mteb_result(place, "org__b", mteb_version="1.0.0")
    yield has_means("another version is marked", place, {"org/a": 70.0, "org/b": 70.0}, "1.0.0")
    write(place, "extra.csv", table({"c": [71.5]}, "STS12"))
    yield has_means("a CSV in mteb's folder", place, {"org/a": 70.0, "org/b": 70.0, "c": 71.5})
    write(place, "corpus.csv", "text,label\nx,1\n")
    yield has_means(
        "another CSV is named", place, {"org/a": 70.0, "org/b": 70.0, "c": 71.5}, "corpus.csv"
    )
    place = room / "revisions"
    mteb_result(place, "org__a")
    write(place, "org__a/second/STS12.json", (place / "org__a/revision/STS12.json").read_text())
    yield has_means(
        "two revisions of a model", place, {"org/a (revision)": 70.0, "org/a (second)": 70.0}
    )

    rows = {"a": [81.11, 81.21, 81.31], "b": [70.11, 70.21, 70.31]}
    one = write(room, "two/one.csv", table({"a": rows["a"]}))
    two = write(room, "two/two.csv", table({"b": rows["b"]}))
    means = {"a": 81.21, "b": 70.21}
    yield has_means("two sources", [one, two], means)
    yield has_means("a folder of CSVs", one.parent, means)
    yield is_refused("a row in both", [one, one], "second score", "first")
    for name, scores in (
        ("780", [78.0, 780.0, 79.0]),
        ("1e300", [78.0, "1e300", 79.0]),
        ("-101", [-101, 20, 30]),
    ):
        yield is_refused(
            name,
            write(room, "range.csv", table({"a": list(scores), "b": [70, 71, 72]})),
            "a",
            "line",
        )
    for name, columns, values in (
        ("perplexity by name", "metric", "perplexity"),
        ("no bounds, lower is better", "scale,lower_is_better", "none,true"),
        ("lower is better in percent", "lower_is_better", "true"),
    ):
        lines = "".join(
            f"{row},{n},{x + n},{values}\n" for row, x in (("a", 21), ("b", 31)) for n in range(3)
        )
        file = write(room, "lower.csv", f"row,seed,score,{columns}\n{lines}")
        import harness

        verdict = harness.verdict(file, "a", "b").data["verdict"]
        yield Finding(name, "a is better", f"a is {verdict}", verdict == "better")
    copies = {"a": [81.12, 81.12, 81.12], "b": rows["b"]}
    yield has_means(
        "copied runs", write(room, "copies.csv", table(copies)), {"a": 81.12, "b": 70.21}, "copies"
    )
    rounded = {"a": [81.1234, 81.1231, 81.3], "b": rows["b"]}
    yield has_means(
        "copies to four digits",
        write(room, "copies.csv", table(rounded)),
        {"a": 81.18, "b": 70.21},
        "copies",
    )
    for column in ("split", "revision", "metric"):
        text = f"row,seed,task,score,{column}\na,1,T,81,x\nb,1,T,80,y\n"
        yield is_refused(f"{column} in a table", write(room, "of.csv", text), "x", "y", "line 3")
    single = {**rows, "c": [75.5]}
    answer = run_command(
        "verdict", "a", "b", "--scores", str(write(room, "single.csv", table(single)))
    )
    yield Finding(
        "a row with one run", "3 seeds each", answer[1][:200], "3 seeds each" in answer[1]
    )


def _exit_of(file: Path) -> tuple[str, bool]:
    code, text = run_command("verdict", "--scores", str(file))
    return f"exit {code}: {text[:80]}", code == 0


@point("scores")
def damaged_files(folder: Path, room: Path) -> Iterator[Finding]:
    """Whatever a score file holds, the command ends with exit code 2 and one line."""
    for source in sorted(folder.rglob("09-score-files/make.py")):
        import runpy
        import sys

        before = sys.argv
        sys.argv = [str(source), str(room / "made")]
        try:
            runpy.run_path(str(source))
        finally:
            sys.argv = before
        for file in sorted((room / "made").iterdir()):
            yield is_refused(file.name, file)

    yield from _damaged_inspect_logs(room)
    yield from _damaged_results(room)
    yield from _damaged_tables(room)


def _damaged_inspect_logs(room: Path) -> Iterator[Finding]:
    header: dict[str, Any] = {"eval": {"model": "m", "task": "t"}}
    sample: dict[str, Any] = {"id": 1, "scores": {"s": {"value": 1}}}
    for name, changed in (
        ("value is a table", {"scores": {"s": {"value": {"a": 1}}}}),
        ("value is a word", {"scores": {"s": {"value": "maybe"}}}),
        ("value is NaN", {"scores": {"s": {"value": float("nan")}}}),
        ("id is a list", {"id": [1]}),
        ("id is null", {"id": None}),
        ("scores is a word", {"scores": "C"}),
        ("epoch is a list", {"epoch": [1]}),
    ):
        yield is_refused(f"Inspect: {name}", _archive(room, header, [sample | changed]))
        tree = {**header, "samples": [sample | changed]}
        yield is_refused(f"Inspect in JSON: {name}", write(room, "log.json", json.dumps(tree)))
    for name, samples in (("a number", 5), ("a table", {"a": 1}), ("words", ["a"])):
        file = write(room, "log.json", json.dumps(header | {"samples": samples}))
        yield is_refused(f"Inspect: samples are {name}", file)
    yield is_refused(
        "Inspect: model is a list", _archive(room, {"eval": {"model": [], "task": "t"}}, [sample])
    )
    whole = _archive(room, header, [sample]).read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 5):
        yield is_refused(f"Inspect: cut after {cut} bytes", write(room, "cut.eval", whole[:cut]))
    bomb = room / "bomb.eval"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        with archive.open("samples/1.json", "w", force_zip64=True) as stream:
            for _ in range(300):
                stream.write(b" " * 2**20)
    yield is_refused("Inspect: 300 MiB in one sample", bomb, "MiB")


def _damaged_results(room: Path) -> Iterator[Finding]:
    for name, value in (
        ("a very large number", 10**400),
        ("infinite", float("inf")),
        ("a table", {"a": 1}),
        ("true", True),
    ):
        place = room / f"mteb {name}"
        mteb_result(place, "org__a", score=value)
        yield is_refused(f"mteb: main_score is {name}", place, "main_score")
    for name, scores in (
        ("null", None),
        ("a word", "x"),
        ("empty", {}),
        ("no parts", {"test": []}),
    ):
        place = room / f"mteb scores {name}"
        mteb_result(place, "org__a", scores=scores)
        yield is_refused(f"mteb: scores are {name}", place, '"scores')
    for name, line in (
        ("metrics are a word", '{"doc_id": 1, "metrics": "acc", "acc": 1}'),
        ("the metric is a list", '{"doc_id": 1, "metrics": [["acc"]], "acc": 1}'),
        ("the metric is NaN", '{"doc_id": 1, "metrics": ["acc"], "acc": NaN}'),
        ("a number in place of a sample", "5"),
        ("cut", '{"doc_id": 1, "metr'),
        ("doc_id is null", '{"doc_id": null, "acc": 1}'),
        ("a very large number", '{"doc_id": 1, "acc": 1' + "0" * 400 + "}"),
    ):
        log = write(room, f"lm {name}/org__a/samples_t_1.jsonl", line + "\n")
        yield is_refused(f"lm-eval: {name}", log.parents[1], "samples_t_1.jsonl")
    place = room / "odd"
    for name in ("a", "b"):
        mteb_result(place, f"org__{name}", score=0.7)
    for name, content in (
        ("cut", "{"),
        ("deep", "[" * 100_000),
        ("list", "[1]"),
        ("other", "{}"),
        ("latin", b'{"\xe4": 1}'),
    ):
        write(place, f"{name}.json", content)
    means = {"org/a": 70.0, "org/b": 70.0}
    yield has_means("odd JSON files in a folder", place, means, "cut.json")


def _damaged_tables(room: Path) -> Iterator[Finding]:
    packed = room / "bomb.csv.gz"
    with gzip.open(packed, "wb") as stream:
        stream.write(b"row,score\n")
        for _ in range(600):
            stream.write(b"a" * 2**20)
    yield is_refused("600 MiB in one packed line", packed, "MiB")

    frame = pd.DataFrame({"row": ["a", "b"], "seed": ["1", "1"], "score": [80.5, 70.5]})
    for name, changed in (
        ("dates", frame.assign(score=pd.Timestamp("2020-01-01"))),
        ("durations", frame.assign(score=pd.Timedelta("1s"))),
        ("lists", frame.assign(score=pd.Series([[1.0], [2.0]], dtype=object))),
        ("bytes", frame.assign(score=[b"\xff", b"\xfe"])),
        ("complex text", frame.assign(score=["1+2j", "3j"])),
    ):
        yield is_refused(f"Parquet: scores are {name}", _parquet(room, changed), "score")
    yield is_refused(
        "Parquet: cut", write(room, "cut.parquet", _parquet(room, frame).read_bytes()[:-9])
    )
    gold = "row,example,score,target,metric\n" + "".join(
        f"{row},{n},{n},{target},ap\n" for row in "ab" for n, target in enumerate((0, 1, 7))
    )
    yield is_refused("ap with targets of 7", write(room, "ap.csv", gold), "7", "line 4")
    yield is_refused(
        "ap with half of the targets", write(room, "ap.csv", gold.replace(",7,", ",,")), "target"
    )
    unlike = gold.replace("b,1,1,1,", "b,1,1,0,").replace(",7,", ",1,")
    yield is_refused("two gold values of an example", write(room, "ap.csv", unlike), "example 1")


def _archive(room: Path, header: object, samples: list[Any]) -> Path:
    """Write a log of Inspect in its own format."""
    file = room / "log.eval"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for number, sample in enumerate(samples):
            archive.writestr(f"samples/{number}.json", json.dumps(sample))
    return file
