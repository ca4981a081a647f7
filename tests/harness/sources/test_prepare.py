"""What `harness data prepare` fetches from a server, how it is verified and converted, and where tasks find it."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from harness.cli import main
from harness.errors import InputError, OutOfReach, RunError
from harness.machine.progress import Reporter
from harness.sources.remote.download import download, verify
from harness.sources.senteval.captions import read_captions
from harness.sources.senteval.labelled import PROBING, probing_folder, read_probing, read_task
from harness.sources.senteval.penn import penn_tokens
from harness.sources.senteval.prepare import coco_part, prepare
from harness.sources.senteval.prepared import PREPARED, PROBING_FILES, prepared_root

QUIET = Reporter(quiet=True)


class Web:
    """A server of files that can break a connection, and what it was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.break_after: int | None = None
        self.ranges: list[str | None] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = web.files.get(self.path.lstrip("/"))
                if content is None:
                    self.send_error(404)
                    return
                etag = f'"{hashlib.md5(content).hexdigest()}"'
                asked = self.headers.get("Range")
                web.ranges.append(asked)
                start = 0
                if asked and self.headers.get("If-Range") == etag:
                    start = int(asked.removeprefix("bytes=").rstrip("-"))
                    if start >= len(content):
                        self.send_error(416)
                        return
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
                else:
                    self.send_response(200)
                self.send_header("ETag", etag)
                self.send_header("Content-Length", str(len(content) - start))
                self.end_headers()
                self.wfile.write(content[start : web.break_after])

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    thread = threading.Thread(target=web.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield web
    web.server.shutdown()
    thread.join()
    web.server.server_close()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HARNESS_SENTEVAL", raising=False)
    return tmp_path / "cache"


# --- downloads


def test_a_download_goes_on_where_it_broke(web: Web, tmp_path: Path) -> None:
    web.files["big"] = bytes(range(256)) * 8192  # 2 MiB
    web.break_after = 1_500_000
    with pytest.raises(RunError, match=r"1,500,000 of 2,097,152 bytes came\); what was downloaded is kept"):
        download(f"{web.address}/big", tmp_path / "big")
    assert not (tmp_path / "big").exists()
    web.break_after = None
    seen: list[tuple[int, int]] = []
    download(f"{web.address}/big", tmp_path / "big", lambda have, total: seen.append((have, total)))
    assert web.ranges == [None, "bytes=1500000-"]
    assert (tmp_path / "big").read_bytes() == web.files["big"]
    assert seen[-1] == (2_097_152, 2_097_152)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["big"]


def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(web: Web, tmp_path: Path) -> None:
    web.files["big"], web.break_after = b"old" * 1000, 600
    with pytest.raises(RunError):
        download(f"{web.address}/big", tmp_path / "big")
    web.files["big"], web.break_after = b"new" * 1000, None
    assert download(f"{web.address}/big", tmp_path / "big").read_bytes() == b"new" * 1000


def test_what_cannot_be_had_is_one_line(web: Web, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"/none: there is no such file \(404\); give another place with --from"):
        download(f"{web.address}/none", tmp_path / "none")
    with pytest.raises(OutOfReach, match="out of reach"):
        download("http://127.0.0.1:9/x", tmp_path / "x")
    with pytest.raises(InputError, match="begins with https"):
        download("file:///etc/passwd", tmp_path / "x")
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "cache"])


def test_other_bytes_than_at_the_first_download_are_refused(tmp_path: Path) -> None:
    file, known = tmp_path / "a", tmp_path / "checksums.json"
    file.write_bytes(b"one")
    assert verify(file, "set/a", known) == hashlib.sha256(b"one").hexdigest()
    assert json.loads(known.read_text())["set/a"]["bytes"] == 3
    file.write_bytes(b"two")
    with pytest.raises(InputError, match="is not what set/a was at first"):
        verify(file, "set/a", known)


# --- SentEval's data


def test_probing_files_are_found_by_their_tasks_once_they_are_prepared(
    web: Web, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(PROBING_FILES) == set(PROBING.values())
    for name in PROBING_FILES:
        web.files[f"probing/{name}"] = "".join(
            f"{part}\t{label}\ta {label} sentence\n" for part in ("tr", "va", "te") for label in ("PAST", "PRES")
        ).encode()
    with pytest.raises(InputError, match="`harness data prepare probing` fetches them"):
        probing_folder()
    assert main(["data", "prepare", "probing", "--quiet", "--from", f"{web.address}/probing"]) == 0
    assert str(prepared_root() / "probing") in capsys.readouterr().out
    assert read_probing("Tense", probing_folder()).parts["test"].first == ["a PAST sentence", "a PRES sentence"]
    assert main(["data", "list"]) == 0
    listed = capsys.readouterr().out
    assert f"probing         task data, 10 x 120,000 sentences, 0.1 GB; {prepared_root() / 'probing'}" in listed
    asked = len(web.ranges)
    prepare("probing", QUIET)  # is there: nothing is asked for
    assert len(web.ranges) == asked
    (prepared_root() / "probing" / "past_present.txt").write_text("tr\tPAST\tchanged\n")
    with pytest.raises(InputError, match=r"past_present.txt: is not what probing/past_present.txt was at first"):
        prepare("probing", QUIET)


def test_a_page_in_the_place_of_a_file_is_told(web: Web) -> None:
    web.files |= dict.fromkeys(PROBING_FILES, b"<html>sign in</html>\n")
    with pytest.raises(InputError, match="line 1: expected tr, va or te"):
        prepare("probing", QUIET, web.address)
    assert not (prepared_root() / "probing").exists()


def snli(rows: dict[str, list[tuple[str, ...]]]) -> bytes:
    header = ("gold_label", "b1", "b2", "p1", "p2", "sentence1", "sentence2", "captionID")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__MACOSX/../../evil", "never unpacked")
        for part, lines in rows.items():
            table = [header, *((label, "", "", "", "", a, b, "1") for label, a, b in lines)]
            archive.writestr(f"snli_1.0/snli_1.0_{part}.txt", "".join("\t".join(line) + "\n" for line in table))
    return buffer.getvalue()


def test_snli_is_tokenised_and_pairs_without_a_label_are_left_out(web: Web, tmp_path: Path) -> None:
    rows = [("neutral", "A man's here.", "He can't go."), ("-", "no", "no"), ("entailment", "Two.", "One?")]
    web.files["snli_1.0.zip"] = snli(dict.fromkeys(("train", "dev", "test"), rows))
    folder = prepare("snli", QUIET, web.address)
    assert (folder / "s1.dev").read_text() == "A man 's here . \nTwo . \n"
    assert (folder / "labels.test").read_text() == "neutral\nentailment\n"
    (tmp_path / "downstream").mkdir()
    train = read_task("SNLI", tmp_path / "downstream").parts["train"]
    assert dict(zip(train.first, train.second, strict=True))["A man 's here ."] == "He ca n't go ."
    assert not (prepared_root() / "downloads" / "snli").exists()


def test_a_damaged_archive_leaves_nothing(web: Web) -> None:
    whole = snli({"train": [("neutral", "a", "b")] * 500})
    for content in (whole[: len(whole) // 2], whole):
        web.files["snli_1.0.zip"] = content
        with pytest.raises(InputError, match=r"damaged or truncated zip|has no snli_1.0/snli_1.0_dev.txt"):
            prepare("snli", QUIET, web.address)
        assert not (prepared_root() / "SNLI").exists()
        (prepared_root() / "checksums.json").unlink()
        (prepared_root() / "downloads/snli/snli_1.0.zip").unlink()


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [  # the examples of the Treebank's own guidelines, and what the rules say of each sign
        ("They'll save and invest more.", "They 'll save and invest more . "),
        ("hi, my name can't hello,", "hi , my name ca n't hello , "),
        ('"Good muffins cost $3.88 (in N.Y.)," he said.', "`` Good muffins cost $ 3.88 ( in N.Y. ) , '' he said . "),
        ("I cannot, gonna -- the dogs' 'tis...", "I can not , gon na -- the dogs ' 't is ... "),
    ],
)
def test_tokens_are_those_of_the_treebank(sentence: str, tokens: str) -> None:
    assert penn_tokens(sentence) == tokens


def coco(images: int, shift: int = 0) -> dict[str, object]:
    """The structure that SentEval's loader reads: features by image, five or more captions of each by id."""
    features = np.arange(images * 4, dtype=np.float32).reshape(images, 4) + shift
    ids = {image: [100 + 7 * image + k for k in range(6)] for image in range(images)}
    captions = {i: {"cleaned_caption": f"a caf\xe9 {i}", "id": i, "score": 0.5} for five in ids.values() for i in five}
    return {
        "features": features,
        "image_to_caption_ids": ids,
        "captions": captions,
        "more": [None, True, (1, 2, 3, -4)],
    }


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_the_pickles_of_coco_are_converted(web: Web, tmp_path: Path, protocol: int) -> None:
    for part, images in (("train", 3), ("valid", 2), ("test", 1)):
        web.files[f"{part}.pkl"] = pickle.dumps(coco(images), protocol=protocol)
    folder = prepare("coco", QUIET, web.address)
    features, captions = read_captions(folder, "train")
    np.testing.assert_array_equal(features, np.arange(12).reshape(3, 4))
    assert features.dtype == np.float32
    assert captions[:6] == [f"a caf\xe9 {i} ." for i in (100, 101, 102, 103, 104, 107)]
    assert sorted(file.name for file in folder.iterdir()) == sorted(PREPARED["coco"].made)


def test_a_pickle_of_python_2_has_texts_of_bytes(tmp_path: Path) -> None:
    """What cPickle of Python 2 writes: `str` by the opcodes S and U, an array's content among them."""
    raw = np.array([[1.5, -2.0]], dtype="<f8").tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntU\x01btR"
        b"(I1\n(I1\nI2\ntcnumpy\ndtype\n(U\x02f8I0\nI1\ntR(I3\nU\x01<NNNI-1\nI-1\nI0\ntbI00\n"
    )  # fmt: skip
    texts = b"U\x08captions}" + b"".join(
        b"K%c}U\x0fcleaned_captionVna\\u00efve\nss" % k if k else b"K\x00}U\x0fcleaned_captionS'it\\'s'\nss"
        for k in range(5)
    )
    for content in (b"S" + repr(raw)[1:].encode() + b"\n", b"U" + bytes([len(raw)]) + raw):
        file = tmp_path / "a.pkl"
        ids = b"U\x14image_to_caption_ids}K\x00(lK\x00aK\x01aK\x02aK\x03aK\x04as"
        file.write_bytes(b"}" + b"U\x08features" + array + content + b"tbs" + texts + b"s" + ids + b"s.")
        features, captions = coco_part(file)
        np.testing.assert_array_equal(features, [[1.5, -2.0]])
        assert captions == ["it's .", *["na\xefve ."] * 4]


class Evil:
    """Runs a command when a pickle of it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        import os

        return os.system, (f"touch {self.mark}",)


def test_nothing_that_a_pickle_names_is_run(tmp_path: Path) -> None:
    file, mark = tmp_path / "a.pkl", tmp_path / "mark"
    for protocol in (0, 2, 4):
        file.write_bytes(pickle.dumps({"features": Evil(mark)}, protocol=protocol))
        with pytest.raises(InputError, match=r"names '(posix|nt)\.system'; it holds more than plain data"):
            coco_part(file)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"cbuiltins\neval\n(S'1'\ntR.", "names 'builtins.eval'"),
        (b"cnumpy\nload\n(S'x'\ntR.", "names 'numpy.load'"),
        (b"\x80\x04\x8c\x05numpy\x8c\x08ndarray\x93)R.", "damaged"),
        (b"ccopy_reg\n_reconstructor\n.", "names 'copy_reg._reconstructor'"),
        (b"cnumpy\ndtype\n(S'O'\ntR" b"0cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'O'\ntRS'12345678'\ntR.",
         "an array of 'O'"),
        (b"Pid\n.", "opcode b'P'"),
        (b"\x82\x01.", r"opcode b'\x82'"),
        (b"(ios\nsystem\n.", "opcode b'i'"),
        (b"T\xff\xff\xff\x7fabc.", "are announced that are not there"),
        (b"T\xff\xff\xff\xffabc.", "are announced that are not there"),
        (b"X\x02\x00\x00\x00\xff\xfe.", "damaged"),
        (b"}]Ns.", "a key is a list"),
        (b"}" + b"N" + b"\x85" * 5000 + b"Ns.", "a key is a tuple"),
        (b"h\x05.", "damaged"),
        (b"0.", "damaged"),
        (b"I1\n", "damaged"),
        (b"I" + b"9" * 5000 + b"\n.", "damaged"),
        (b"S'abc\n.", "damaged"),
        (b"NNb.", "the state of a NoneType"),
        (b"(lp0\ng0\na.", "not SentEval's pickle"),
        (b"}.", "not SentEval's pickle"),
        (b"", "damaged"),
    ],
)  # fmt: skip
def test_hostile_and_damaged_pickles_are_one_line(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "a.pkl"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        coco_part(file)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(2**40, 2**40), (-1, 4), (3, 4), (True, 16)])
def test_an_array_whose_shape_is_not_its_content_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    tree = pickle.dumps(np.zeros((2, 2)), protocol=2)
    whole = pickle.dumps((2, 2), protocol=2)[2:-1].partition(b"q")[0]
    assert whole in tree
    file = tmp_path / "a.pkl"
    file.write_bytes(tree.replace(whole, pickle.dumps(shape, protocol=2)[2:-1].partition(b"q")[0]))
    with pytest.raises(InputError, match="damaged"):
        coco_part(file)


def test_unknown_names_and_options_that_do_not_fit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["data", "prepare", "probin"]) == 2
    assert 'unknown (did you mean "probing"?)' in capsys.readouterr().err
    assert main(["data", "prepare", "wiki1m", "--from", "x"]) == 2
    assert main(["data", "prepare", "coco", "--limit", "5"]) == 2
    assert main(["data", "prepare", "coco", "--quiet", "--from", str(tmp_path)]) == 2
    assert "train.pkl: no such file; --from needs a folder with" in capsys.readouterr().err


def test_the_list_is_machine_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["stsb-sentences"]["parts"] == "train, dev, test"
    assert listed["coco"]["here"] == ""
    assert all(about["source"] and about["licence"] and about["purpose"] for about in listed.values())
