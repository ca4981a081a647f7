"""SentEval's data of the web: downloaded, checked and converted when a task first needs it."""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from harness.errors import OutOfReach
from harness.sources.senteval import prepared
from harness.sources.senteval.labelled import PROBING, probing_folder, read_probing, read_task
from harness.sources.senteval.prepared import (
    PREPARED,
    get_prepared_root,
    penn_tokens,
    prepare_folder,
    read_captions,
)
from tests.support.errors import raises_input_error


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def web(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The folder that a server on this machine offers as the address of every data set; an empty
    cache.
    """
    folder = tmp_path / "web"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    for name, data in PREPARED.items():
        monkeypatch.setitem(PREPARED, name, dataclasses.replace(data, address=address, sha256=None))
    monkeypatch.setattr(prepared, "_FAILURES", {})
    monkeypatch.setattr("huggingface_hub.is_offline_mode", lambda: False)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HARNESS_SENTEVAL", raising=False)
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def test_probing_files_are_downloaded_once(web: Path) -> None:
    assert set(PREPARED["probing"].downloads) == set(PROBING.values())
    lines = [
        f"{part}\t{label}\ta {label} sentence\n"
        for part in ("tr", "va", "te")
        for label in ("PAST", "PRES")
    ]
    for name in PREPARED["probing"].downloads:
        (web / name).write_text("".join(lines))
    assert read_probing("Tense", probing_folder()).parts["test"].first == [
        "a PAST sentence",
        "a PRES sentence",
    ]
    for name in PREPARED["probing"].downloads:
        (web / name).unlink()
    assert probing_folder() == get_prepared_root() / "probing"


def test_what_cannot_be_downloaded_is_one_line_that_names_it(
    web: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raises_input_error(file=f"{PREPARED['probing'].address}/bigram_shift.txt"):
        probing_folder()
    monkeypatch.setitem(
        PREPARED, "coco", dataclasses.replace(PREPARED["coco"], address="http://127.0.0.1:9")
    )
    with raises_input_error(file="http://127.0.0.1:9/train.pkl", kind=OutOfReach):
        prepare_folder("coco")
    monkeypatch.setattr("huggingface_hub.is_offline_mode", lambda: True)
    with raises_input_error(file=f"{PREPARED['snli'].address}/snli_1.0.zip", kind=OutOfReach):
        prepare_folder("snli")


def test_a_web_page_instead_of_a_file_is_refused(web: Path) -> None:
    for name in PREPARED["probing"].downloads:
        (web / name).write_text("<html>sign in</html>\n")
    with raises_input_error(
        file=get_prepared_root() / "downloads/probing/bigram_shift.txt", line=1
    ):
        probing_folder()
    assert not (get_prepared_root() / "probing").exists()


def snli(*parts: str) -> bytes:
    rows = [
        ("neutral", "A man's here.", "He can't go."),
        ("-", "no", "no"),
        ("entailment", "Two.", "One?"),
    ]
    header = ("gold_label", "b1", "b2", "p1", "p2", "sentence1", "sentence2", "captionID")
    table = [header, *((label, "", "", "", "", a, b, "1") for label, a, b in rows)]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__MACOSX/../../evil", "never unpacked")
        for part in parts:
            archive.writestr(
                f"snli_1.0/snli_1.0_{part}.txt", "".join("\t".join(line) + "\n" for line in table)
            )
    return buffer.getvalue()


def test_snli_is_tokenised_and_pairs_without_a_label_are_left_out(web: Path) -> None:
    (web / "snli_1.0.zip").write_bytes(snli("train", "dev", "test"))
    folder = prepare_folder("snli")
    assert (folder / "s1.dev").read_text() == "A man 's here . \nTwo . \n"
    assert (folder / "labels.test").read_text() == "neutral\nentailment\n"
    train = read_task("SNLI", get_prepared_root().parent / "senteval" / "downstream").parts["train"]
    assert dict(zip(train.first, train.second, strict=True))["A man 's here ."] == "He ca n't go ."
    assert not (get_prepared_root() / "downloads" / "snli").exists()


@pytest.mark.parametrize(
    "damage", [lambda: snli("train", "dev", "test")[:400], lambda: snli("train")]
)
def test_a_damaged_archive_leaves_nothing(web: Path, damage: Callable[[], bytes]) -> None:
    (web / "snli_1.0.zip").write_bytes(damage())
    with raises_input_error(file=get_prepared_root() / "downloads/snli/snli_1.0.zip"):
        prepare_folder("snli")
    assert not (get_prepared_root() / "SNLI").exists()


def test_another_checksum_is_refused(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PREPARED, "snli", dataclasses.replace(PREPARED["snli"], sha256="0" * 64))
    (web / "snli_1.0.zip").write_bytes(snli("train", "dev", "test"))
    with raises_input_error(file=f"{PREPARED['snli'].address}/snli_1.0.zip"):
        prepare_folder("snli")


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [  # the examples of the Treebank's own guidelines, and what the rules say of each sign
        ("They'll save and invest more.", "They 'll save and invest more . "),
        ("hi, my name can't hello,", "hi , my name ca n't hello , "),
        (
            '"Good muffins cost $3.88 (in N.Y.)," he said.',
            "`` Good muffins cost $ 3.88 ( in N.Y. ) , '' he said . ",
        ),
        ("I cannot, gonna -- the dogs' 'tis...", "I can not , gon na -- the dogs ' 't is ... "),
    ],
)
def test_tokens_are_those_of_the_treebank(sentence: str, tokens: str) -> None:
    assert penn_tokens(sentence) == tokens


def coco(images: int) -> dict[str, object]:
    """The structure that SentEval's loader reads: features by image, five or more captions of each
    by id.
    """
    features = np.arange(images * 4, dtype=np.float32).reshape(images, 4)
    ids = {image: [100 + 7 * image + k for k in range(6)] for image in range(images)}
    captions = {
        i: {"cleaned_caption": f"a caf\xe9 {i}", "id": i, "score": 0.5}
        for five in ids.values()
        for i in five
    }
    return {
        "features": features,
        "image_to_caption_ids": ids,
        "captions": captions,
        "more": [None, True, (1, -4)],
    }


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_the_pickles_of_coco_are_read(web: Path, protocol: int) -> None:
    for part, images in (("train", 3), ("valid", 2), ("test", 1)):
        (web / f"{part}.pkl").write_bytes(pickle.dumps(coco(images), protocol=protocol))
    features, captions = read_captions(prepare_folder("coco") / "train.pkl")
    np.testing.assert_array_equal(features, np.arange(12).reshape(3, 4))
    assert features.dtype == np.float32
    assert captions[:6] == [f"a caf\xe9 {i} ." for i in (100, 101, 102, 103, 104, 107)]


def test_features_that_are_no_finite_matrix_and_images_with_few_captions_are_refused(
    tmp_path: Path,
) -> None:
    file, sound = tmp_path / "a.pkl", coco(2)
    few = {0: [100, 101], 1: [107, 108, 109, 110, 111]}
    for damage in (
        {"features": np.full((2, 4), np.nan)},
        {"features": np.ones(2)},
        {"image_to_caption_ids": few},
    ):
        file.write_bytes(pickle.dumps(sound | damage))
        with raises_input_error(file=file):
            read_captions(file)


def test_a_pickle_of_python_2_has_texts_of_bytes(tmp_path: Path) -> None:
    """What cPickle of Python 2 writes: `str` by the opcodes S and U, an array's content among them."""
    raw = np.array([[1.5, -2.0]], dtype="<f8").tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntU\x01btR"
        b"(I1\n(I1\nI2\ntcnumpy\ndtype\n(U\x02f8I0\nI1\ntR(I3\nU\x01<NNNI-1\nI-1\nI0\ntbI00\n"
    )
    texts = b"U\x08captions}" + b"".join(
        b"K%c}U\x0fcleaned_captionVna\\u00efve\nss" % k
        if k
        else b"K\x00}U\x0fcleaned_captionS'it\\'s'\nss"
        for k in range(5)
    )
    ids = b"U\x14image_to_caption_ids}K\x00(lK\x00aK\x01aK\x02aK\x03aK\x04as"
    file = tmp_path / "a.pkl"
    file.write_bytes(
        b"}"
        + b"U\x08features"
        + array
        + b"U"
        + bytes([len(raw)])
        + raw
        + b"tbs"
        + texts
        + b"s"
        + ids
        + b"s."
    )
    features, captions = read_captions(file)
    np.testing.assert_array_equal(features, [[1.5, -2.0]])
    assert captions == ["it's .", *["na\xefve ."] * 4]


class Evil:
    """Runs a command when a pickle of it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.mark}",)


def test_nothing_that_a_pickle_names_is_run(tmp_path: Path) -> None:
    file, mark = tmp_path / "a.pkl", tmp_path / "mark"
    for protocol in (0, 2, 4):
        file.write_bytes(pickle.dumps({"features": Evil(mark)}, protocol=protocol))
        with raises_input_error(file=file):
            read_captions(file)
    assert not mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"ccopy_reg\n_reconstructor\n.",
        b"cnumpy\ndtype\n(S'O'\ntR0cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'O'\ntRS'12345678'\ntR.",
        b"Pid\n.",
        b"(ios\nsystem\n.",
        b"T\xff\xff\xff\x7fabc.",
        b"X\x02\x00\x00\x00\xff\xfe.",
        b"}]Ns.",
        b"h\x05.",
        b"0.",
        b"I1\n",
        b"NNb.",
        b"(lp0\ng0\na.",
        b"}.",
        b"",
    ],
)
def test_hostile_and_damaged_pickles_are_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.pkl"
    file.write_bytes(content)
    with raises_input_error(file=file):
        read_captions(file)
