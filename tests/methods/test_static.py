"""Averaged word vectors: which words count, how files are read, and that what is saved is the same
for others.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from harness.errors import InputError, NotFitted
from methods.parts.word_vectors import LOST_CAPITALS, read_word_vectors, vectors_hash
from methods.static import Static
from tests.support.errors import raises_input_error

LINES = ["the 1 0 0", "cat 0 2 0", "Cat 0 0 8", ". 4 4 4", "sat -3 1 0.5", "café 1 1 1", "a 9 9 9"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(LINES) + "\n", "utf-8")
    return path


def static(file: Path, **values: Any) -> Static:
    return Static(Static.configure({"vectors": str(file), **values})).fit()


def test_mean_over_the_words_that_have_a_vector(file: Path) -> None:
    method = static(file)
    assert method.encode("the cat").tolist() == [0.5, 1, 0]
    assert method.encode("the unheard cat  cat").tolist() == pytest.approx([1 / 3, 4 / 3, 0]), (
        "unknown words: no part"
    )
    assert method.encode("unheard of").tolist() == [0, 0, 0], "nothing known: the zero vector"
    assert method.encode("aa cata .. thecat").tolist() == [0, 0, 0], (
        "a word is taken whole or not at all"
    )
    assert method.encode("the Cat").tolist() == [0.5, 0, 4], "case as stored"
    assert method.encode("café\tthe\n").tolist() == [1, 0.5, 0.5], "any white space separates"


@pytest.mark.parametrize("empty", ["", "   ", "\t\n"])
def test_an_empty_sentence_counts_as_a_full_stop(file: Path, empty: str) -> None:
    assert static(file).encode(["the", empty]).tolist() == [[1, 0, 0], [4, 4, 4]]


def test_options_of_tokenisation(file: Path) -> None:
    assert static(file, lower_case=True).encode("THE Cat").tolist() == [0.5, 1, 0]
    assert static(file).encode("the cat.").tolist() == [1, 0, 0], (
        "with blanks only, 'cat.' is one word"
    )
    split = static(file, tokens="punctuation").encode("the cat.")
    assert split.tolist() == pytest.approx([5 / 3, 2, 4 / 3])
    assert static(file, words=2).encode("the cat sat").tolist() == [0.5, 1, 0]
    assert static(file, max_length=1).encode("unheard the cat").tolist() == [1, 0, 0]


def test_a_note_says_where_capitals_are_unknown(file: Path, tmp_path: Path) -> None:
    lower = tmp_path / "lower.txt"
    lower.write_text("the 1 0 0\ncat 0 1 0\n")
    assert static(lower).fit_report.training["notes"] == [LOST_CAPITALS]
    assert "notes" not in static(lower, lower_case=True).fit_report.training
    assert "notes" not in static(file).fit_report.training, "the file has the word Cat"


def test_shapes_tensors_and_unit_length(file: Path) -> None:
    method = static(file)
    assert np.asarray(method.encode([])).shape == (0, 3)
    assert method.encode(["the"]).dtype == np.float32
    assert torch.is_tensor(method.encode(["the", "cat"], convert_to_tensor=True))
    assert method.encode(["sat", "unheard"], normalize_embeddings=True)[1].tolist() == [0, 0, 0]
    assert np.linalg.norm(method.encode("sat the", normalize_embeddings=True)) == pytest.approx(1)
    with pytest.raises(NotFitted):
        Static().encode("early")
    with raises_input_error(key="sentence 1"):
        method.encode(["the", 3])  # type: ignore[list-item]


def test_a_header_is_skipped_only_where_the_first_line_has_two_fields(tmp_path: Path) -> None:
    plain, headed = tmp_path / "glove.txt", tmp_path / "word2vec.txt.gz"
    plain.write_text(", 1 2 3\nthe 4 5 6 \n")
    with gzip.open(headed, "wt") as stream:
        stream.write("2 3\n, 1 2 3\nthe 4 5 6 \n")
    for path in (plain, headed):
        vectors = read_word_vectors(str(path))
        assert vectors.row == {",": 0, "the": 1}
        assert vectors.matrix.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert vectors_hash(str(plain)) != vectors_hash(str(headed))
    assert static(headed).encode(",").tolist() == [1, 2, 3]


def test_odd_lines(tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_bytes(b"\xef\xbb\xbfone 1 2\ntwo words 3 4\none 5 6\nbad\xff 7 8\nlast 9e-1 -1E2\n")
    vectors = read_word_vectors(str(path))
    assert set(vectors.row) == {"one", "bad�", "last"}, "a word with a blank in it can never be met"
    assert vectors.matrix[vectors.row["one"]].tolist() == [1, 2], (
        "of a word that stands twice the first counts"
    )
    assert vectors.matrix[vectors.row["last"]].tolist() == pytest.approx([0.9, -100])


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", None),
        ("the\n", 1),
        ("the 1 2\ncat 3\n", 2),
        ("the 1 2\ncat 3 x\n", 2),
        ("the 1 2\ncat 3 nan\n", 2),
        ("2 3\nthe 1 2\n", 2),
        ("3 2\nthe 1 2\n", None),
    ],
)
def test_damaged_files_are_named_with_their_line(
    tmp_path: Path, content: str, line: int | None
) -> None:
    path = tmp_path / "damaged.txt"
    path.write_text(content)
    with raises_input_error(file=path, line=line):
        read_word_vectors(str(path))


@pytest.mark.parametrize("uri", ["nowhere.txt", "hf://datasets/one"])
def test_sources_that_are_not_there(uri: str) -> None:
    with raises_input_error(file=uri):
        Static(Static.configure({"vectors": uri})).fit()


@pytest.mark.parametrize("safe", [True, False])
def test_a_model_of_sentence_transformers_gives_its_words_and_vectors(
    file: Path, tmp_path: Path, safe: bool
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings

    words = WordEmbeddings.from_text_file(str(file))  # puts a word for padding first
    model = SentenceTransformer(modules=[words, Pooling(3)])
    model.save(str(tmp_path / "model"))
    if not safe:  # as the models of averaged word vectors on the hub
        folder = next((tmp_path / "model").rglob("whitespacetokenizer_config.json")).parent
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    found, expected = read_word_vectors(str(tmp_path / "model")), read_word_vectors(str(file))
    assert found.row == expected.row
    assert np.array_equal(found.matrix, expected.matrix)
    assert set(read_word_vectors(str(tmp_path / "model"), 2).row) == {"the", "cat"}
    assert static(tmp_path / "model").encode("the cat").tolist() == [0.5, 1, 0], "stop words count"


def test_weights_that_are_no_tensors_are_refused(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "0_WordEmbeddings"
    folder.mkdir()
    modules = [
        {
            "idx": 0,
            "name": "0",
            "path": folder.name,
            "type": "sentence_transformers.models.WordEmbeddings",
        }
    ]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (folder / "whitespacetokenizer_config.json").write_text('{"vocab": ["the"]}')
    torch.save(
        {"emb_layer.weight": file}, folder / "pytorch_model.bin"
    )  # unpickling it would run code of pathlib
    with raises_input_error(file=folder):
        read_word_vectors(str(tmp_path))


@pytest.mark.parametrize(
    "values", [{}, {"lower_case": True, "tokens": "punctuation"}, {"max_length": 2}]
)
def test_sentence_transformers_reads_the_same_vectors(
    file: Path, tmp_path: Path, values: dict[str, Any]
) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [
        "the cat sat .",
        "",
        "  ",
        "unheard",
        "The CAT.",
        "aa b",
        "café",
        "x" * 500,
        "the \ue000cat",
    ]
    method = static(file, **values)
    method.save(tmp_path / "model")
    method.save(tmp_path / "model")
    vectors = method.encode(texts)
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts)
    assert np.abs(theirs - vectors).max() < 1e-6
    again = Static.load(tmp_path / "model")
    assert again.config == method.config
    assert np.array_equal(again.encode(texts), vectors)
    assert again.num_parameters() == method.num_parameters() == 3 * len(LINES)


def test_a_row_is_named_by_its_vectors_and_depends_on_their_content(file: Path) -> None:
    config = Static.configure({"vectors": str(file)})
    assert Static(config, base_model="embedded:mini-bert").start_model == str(file)
    before = Static(config).inputs
    file.write_text(file.read_text().replace("the 1", "the 2"))
    assert Static(config).inputs != before


@pytest.mark.hub
def test_glove_of_the_hub() -> None:
    try:
        method = Static(Static.configure({}, preset="glove-6b")).fit()
    except InputError as error:  # a mirror need not have every model
        pytest.skip(str(error))
    king, queen, car, banana = np.asarray(
        method.encode(["king", "Queen", "car", "banana"], normalize_embeddings=True)
    )
    assert king @ queen > 0.6 > car @ banana
    assert method.num_parameters() == 400_000 * 300


@pytest.mark.hub
def test_word2vec_file_of_a_model_repository() -> None:
    vectors = read_word_vectors("hf://local/glove-50d/vectors.txt.gz")
    assert vectors.matrix.shape == (50_000, 50)
