"""Shows that a damaged or hostile training text is refused in one line, and that an unusual one is
read correctly.

    python -m tools.campaigns.hostile_corpora [--only PART_OF_A_NAME]

Each case lists what is expected: words of the refusal, or the texts. `harness train` must either
end with exit code 2 and one line that contains those words and names the file, within bounded
memory; or train, and `load_corpus` must return the texts.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from harness.sources.corpus.selected_texts import Kind
from tools.campaigns import forked
from tools.campaigns.counted import save_count

ROOM = 400 * 2**20  # bytes that a case may take beyond what the imported libraries do
ONE = ["A first sentence.", "And a second."]
PLAIN = "\n".join(ONE).encode() + b"\n"
METHODS = {"sentences": "simcse", "pairs": "simcse_supervised", "documents": "declutr"}


class Case(NamedTuple):
    """A corpus under `name`: its bytes or what makes it; `expected`: words of a refusal, or the
    texts.
    """

    name: str
    content: bytes | Callable[[Path], Any] | None
    expected: str | list[Any]
    kind: Kind = "sentences"
    uri: str = ""  # where it is not the file's path


def bomb(file: Path) -> None:
    """1.5 GB of one letter in 7 MB."""
    with gzip.open(file, "wb", compresslevel=1) as packed:
        for _ in range(1500):
            packed.write(b"a" * 2**20)


def jsonl(*rows: str) -> bytes:
    return "\n".join(rows).encode() + b"\n"


FIRST = '{"text": "A first sentence."}'
CASES = [
    # encodings
    Case("bom.txt", b"\xef\xbb\xbf" + PLAIN, ONE),
    Case("bom.csv", b"\xef\xbb\xbftext\n" + PLAIN, ONE),
    Case("bom.jsonl", b"\xef\xbb\xbf" + jsonl(FIRST, '{"text": "And a second."}'), ONE),
    Case("two-boms.txt", b"\xef\xbb\xbf\xef\xbb\xbf" + PLAIN, ["\ufeffA first sentence.", ONE[1]]),
    Case("latin.txt", "naïve café\nAnd a second.\n".encode("latin-1"), "line 1: not UTF-8"),
    Case("late-latin.txt", PLAIN * 500 + b"caf\xe9\n", "line 1001: not UTF-8"),
    Case("utf16.txt", PLAIN.decode().encode("utf-16"), "line 1: UTF-16"),
    Case("utf16-le-without-a-mark.txt", PLAIN.decode().encode("utf-16-le"), "line 1: UTF-16"),
    Case("utf32.txt", PLAIN.decode().encode("utf-32"), "line 1: UTF-16"),
    Case("utf16.csv", ("text\n" + PLAIN.decode()).encode("utf-16"), "line 1: UTF-16"),
    Case("utf16.jsonl", FIRST.encode("utf-16"), "line 1: UTF-16"),
    Case("surrogates.txt", b"\xed\xa0\x80\nx\n", "line 1: not UTF-8"),
    Case("overlong.txt", b"\xc0\xaf\nx\n", "line 1: not UTF-8"),
    Case("cut-in-a-character.txt", PLAIN + "é".encode()[:1], "line 3: not UTF-8"),
    Case("scripts.txt", "日本語の文。\nדוגמה\n🙂🙂\n".encode(), ["日本語の文。", "דוגמה", "🙂🙂"]),
    Case(
        "separators.txt",
        "a\u2028b\nc\u0085d\ne\x0cf\n".encode(),
        ["a\u2028b", "c\u0085d", "e\x0cf"],
    ),
    # bytes that are no text
    Case("nul.txt", b"A first sentence.\nAnd \0 a second.\n", "line 2: .*NUL"),
    Case("zeros.txt", bytes(5000), "line 1: .*NUL"),
    Case("image.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "line 1: not UTF-8"),
    Case("packed-but-not-called-so.txt", gzip.compress(PLAIN), "not UTF-8|NUL"),
    Case("escape.txt", b"\x1b[2J gone\nAnd a second.\n", ["\x1b[2J gone", ONE[1]]),
    # line ends
    Case("crlf.txt", PLAIN.replace(b"\n", b"\r\n"), ONE),
    Case("cr.csv", b"text\rA first sentence.\rAnd a second.\r", "line 1: a carriage return"),
    Case("cr.txt", PLAIN.replace(b"\n", b"\r"), "line 1: a carriage return"),
    Case("cr-within.txt", b"A first\rsentence.\nAnd a second.\n", "line 1: a carriage return"),
    Case("cr.tsv", b"text\nA first\rsentence.\nAnd a second.\n", "line 2: a carriage return"),
    Case("no-last-end.txt", PLAIN[:-1], ONE),
    Case("blank-lines.txt", b"\n\n  \n" + PLAIN + b"\t\n\n", ONE),
    # lengths
    Case("long-line.txt", b"a" * (17 * 2**20) + b"\nb\n", "line 1: longer than 16 MiB"),
    Case("two-mebibytes.txt", b"a " * 2**20 + b"\nb\n", [2**21 - 1, 1]),
    Case("long-value.csv", b'text\n"' + b"a line\n" * (3 * 2**20) + b'"\nb\n', "field larger than"),
    Case("empty.txt", b"", "is empty"),
    Case("only-blank.txt", b"\n \n", "is empty"),
    Case("one-line.txt", b"alone\n", "holds only one"),
    Case("header-alone.csv", b"text\n", "is empty"),
    Case("empty.csv", b"", "is empty"),
    Case("empty.txt.gz", gzip.compress(b""), "is empty"),
    # gzip
    Case("whole.txt.gz", gzip.compress(PLAIN), ONE),
    Case("two-members.txt.gz", gzip.compress(PLAIN[:18]) + gzip.compress(PLAIN[18:]), ONE),
    Case(
        "cut.txt.gz",
        gzip.compress(os.urandom(9000).hex().encode())[:4000],
        "damaged or truncated gzip",
    ),
    Case("cut-head.txt.gz", gzip.compress(PLAIN)[:6], "damaged or truncated gzip"),
    Case(
        "flipped.txt.gz",
        gzip.compress(PLAIN)[:-6] + bytes(2) + gzip.compress(PLAIN)[-4:],
        "damaged or truncated",
    ),
    Case("garbage-after.txt.gz", gzip.compress(PLAIN) + b"garbage", "damaged or truncated gzip"),
    Case("plain-text-called.txt.gz", PLAIN, "damaged or truncated gzip"),
    Case("empty-file.txt.gz", b"", "is empty|damaged or truncated gzip"),
    Case("bomb.txt.gz", bomb, "line 1: longer than 16 MiB"),
    Case("bomb.csv.gz", bomb, "line 1: longer than 16 MiB"),
    # tables
    Case("open-quote.csv", b'text\na\n"b\nc\nd\n', "line 3: not CSV"),
    Case(
        "quoted.csv",
        b'text,n\n"A, first ""quote""\nof two lines",1\nb,2\n',
        ['A, first "quote"\nof two lines', "b"],
    ),
    Case("ragged.csv", b"text,n\na,1\nb,2,3\n", "line 3: has 3 cells"),
    Case("no-column.csv", b"sentence\na\nb\n", 'no column "text"'),
    Case("twice.csv", b"text,text\na,b\nc,d\n", "its columns are: text"),
    Case("semicolons.csv", b"text;n\na;1\nb;2\n", ["a", "b"]),
    Case("open-quote.tsv", b'text\n"a\nb\n', ['"a', "b"]),
    Case("formula.csv", b"text\n=1+1\n@SUM(A1)\n", ["=1+1", "@SUM(A1)"]),
    Case("pairs.csv", b"anchor,positive\na,b\nc,\nd,e\n", [("a", "b"), ("d", "e")], "pairs"),
    Case("one-column.csv", b"anchor\na\nb\n", 'no column "positive"', "pairs"),
    Case("pairs.txt", PLAIN, 'no column "anchor"', "pairs"),
    # JSON lines
    Case("number.jsonl", jsonl(FIRST, '{"text": 3}'), 'line 2: column "text" holds no text'),
    Case("list.jsonl", jsonl(FIRST, '["a"]'), "line 2: expected a JSON object"),
    Case("null.jsonl", jsonl(FIRST, '{"text": null}', '{"text": "b"}'), [ONE[0], "b"]),
    Case("no-key.jsonl", jsonl(FIRST, "{}"), 'line 2: no column "text"'),
    Case("cut.jsonl", jsonl(FIRST, '{"text": "b'), "line 2: not JSON"),
    Case(
        "whole-file-is-a-list.jsonl", b'[\n{"text": "a"},\n{"text": "b"}\n]\n', "line 1: not JSON"
    ),
    Case("deep.jsonl", jsonl(FIRST, "[" * 200_000), "line 2: not JSON"),
    Case("half-a-pair.jsonl", jsonl(FIRST, '{"text": "\\ud800"}'), "line 2: .*surrogate"),
    Case(
        "huge-number.jsonl",
        jsonl(FIRST, '{"text": "b", "n": ' + "9" * 9000 + "}"),
        "line 2: not JSON",
    ),
    Case("nan.jsonl", jsonl(FIRST, '{"text": NaN}'), 'line 2: column "text" holds no text'),
    # what is no file of texts
    Case("folder.txt", Path.mkdir, "is a folder"),
    Case("pipe.txt", os.mkfifo, "no ordinary file"),
    Case("loop.txt", lambda file: file.symlink_to(file.name), "no such file|symbolic links"),
    Case("dangling.txt", lambda file: file.symlink_to("nowhere.txt"), "no such file"),
    Case("device.txt", lambda file: file.symlink_to("/dev/zero"), "no ordinary file"),
    Case("table.parquet", b"PAR1" + bytes(100) + b"PAR1", "not readable as Parquet"),
    Case("no-ending", PLAIN, "unknown kind of file|neither a file"),
    Case("UPPER.TXT", PLAIN, ONE),
    Case("a name with blanks & signs ü.txt", PLAIN, ONE),
    # URIs
    Case("missing", None, "no such file", uri="{folder}/missing.txt"),
    Case("long name", None, "no such file", uri="{folder}/" + "x" * 300 + ".txt"),
    Case("long path", None, "no such file", uri="/" + "x/" * 3000 + "a.txt"),
    Case("empty uri", None, "neither a file", uri=""),
    Case("control characters", None, "no such file", uri="\x1b[2J\nforged.txt"),
    Case("embedded:none", None, "unknown", uri="embedded:none"),
    Case("near a preset", None, "neither a file.*wiki1m", uri="wiki1"),
    Case("hf without a file", None, "hf://", uri="hf://datasets/a/b"),
    Case("hf of models", None, "expected hf://datasets/ORG/NAME/FILE", uri="hf://models/a/b/c.txt"),
    Case("hf with dots", None, "hf://", uri="hf://datasets/../../etc/passwd.txt"),
    Case("hf with blanks", None, "hf://", uri="hf://datasets/a b/c d/e.txt"),
    Case("hf with an empty part", None, "expected hf://", uri="hf://datasets//b/c.txt"),
    Case("of the web", None, "no such file", uri="https://user:SECRET@example.org/corpus.txt"),
    Case("file scheme", None, "no such file", uri="file:///etc/hostname.txt"),
]


def limit_memory() -> None:
    """Let this process have no more memory than `ROOM` beyond what it has."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmData")]
    limit = 1024 * int(line.split()[1]) + ROOM
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def fault_of(case: Case, folder: Path) -> str:
    """Return what is wrong with how a case ended; empty where it ended as expected."""
    file = folder / case.name
    if case.content is not None:
        if callable(case.content):
            case.content(file)
        else:
            file.write_bytes(case.content)
    uri = case.uri.format(folder=folder) if case.content is None else str(file)
    command = train_command(METHODS[case.kind], folder / "model", uri)
    command += ["--precision", "fp32", "--quiet", "--set", "max_steps=1"]
    to_be_refused = isinstance(case.expected, str)
    ended = forked.run(command, seconds=300, before=limit_memory if to_be_refused else None)

    if fault := ended.fault((0, 2)):
        return fault
    printed = ended.err + ended.out
    if "\x1b" in printed or "\0" in printed or "SECRET" in printed:
        return "a control character or a credential left"
    if isinstance(case.expected, list):
        if ended.code:
            return f"refused: {ended.err.strip()[:300]}"
        return _compare_texts(uri, case)
    return _fault_of_refusal(case, case.expected, file, ended)


def train_command(method: str, out: Path, corpus: str) -> list[str]:
    """Return the words of `harness train` with a corpus, in batches of two."""
    place = ["--out", str(out), "--corpus", corpus]
    return ["train", method, *place, "--dev", "none", "--device", "cpu", "--set", "batch_size=2"]


def _fault_of_refusal(case: Case, words: str, file: Path, ended: forked.Ended) -> str:
    """Return what is wrong with the message on a case that is to be refused with these words."""
    if ended.code == 0:
        return "accepted"
    if ended.err.count("\n") != 1:
        return f"{ended.err.count(chr(10))} lines: {ended.err[:300]}"
    if not re.search(words, ended.err):
        return f"other words: {ended.err.strip()[:300]}"
    if case.content is not None and file.name not in ended.err:
        return f"does not name the file: {ended.err.strip()[:300]}"
    return "something was written" if (file.parent / "model").exists() else ""


def _compare_texts(uri: str, case: Case) -> str:
    from harness.sources import load_corpus

    read: list[Any] = list(load_corpus(uri, kind=case.kind))
    if case.kind == "pairs":
        read = [(pair.anchor, pair.positive) for pair in read]
    if isinstance(case.expected[0], int):
        read = [len(text) for text in read]
    return "" if read == case.expected else f"read as {str(read)[:300]}"


def main() -> int:
    """Exit code 1 when something failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="cases with this in their name")
    args = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1"}
    started = time.monotonic()
    cases = [case for case in CASES if args.only in case.name]
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        for number, case in enumerate([Case("first.txt", PLAIN, ONE), *cases]):
            folder = Path(name).resolve() / str(number)
            folder.mkdir()
            if number == 0:
                (folder / "first.txt").write_bytes(PLAIN)
                train = train_command("simcse", folder / "m", str(folder / "first.txt"))
                assert forked.import_what_is_used_by(train)[0].code == 0
            elif fault := fault_of(case, folder):
                failed[case.name] = fault
                print(f"{case.name}: {fault}", file=sys.stderr, flush=True)
    refused = sum(isinstance(case.expected, str) for case in cases)
    print(
        f"tried {len(cases)} ({refused} to be refused, {len(cases) - refused} to be read), "
        f"passed {len(cases) - len(failed)}, failed {len(failed)}, {time.monotonic() - started:.0f} s"
    )
    print(*(f"{name}: {fault}" for name, fault in failed.items()), sep="\n")
    if not args.only:
        save_count("hostile_corpora", len(cases), len(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
