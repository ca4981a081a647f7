"""Bag of word vectors: the arithmetic mean of the vectors of a sentence's known words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from harness.config import option
from harness.encoder.layout import CONFIG, MODULES, write_json
from harness.encoder.sentences import clean
from harness.errors import NotFitted
from harness.method import FitContext, FitReport, MethodConfig, load_unfitted
from harness.recipes import RecipeFile
from methods.parts.array_method import ArrayMethod, new_folder
from methods.parts.word_vectors import (
    GLOVE,
    SOURCES,
    describe_lost_capitals,
    read_word_vectors,
    vectors_hash,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from harness.sources import TrainingText

CHUNK = 4096  # sentences averaged at a time
MODULE = "0_StaticEmbedding"
MARK = "\ue000"  # stands before every word of the vocabulary; see `word_tokenizer`


class StaticConfig(MethodConfig):
    """Source of the vectors, and how a sentence becomes words."""

    pooling: Literal["mean"] = option("mean", "word vectors are averaged")
    max_length: int | None = option(
        None, "maximum number of known words of a sentence; empty: all", ge=1
    )
    vectors: str = option(GLOVE, SOURCES)
    tokens: Literal["space", "punctuation"] = option(
        "space",
        "words are what blanks separate (SentEval's files are tokenised), or punctuation is split off as well",
    )
    lower_case: bool = option(
        False, "lower-case the text first: for vectors of lower-cased words, such as GloVe 6B"
    )
    words: int | None = option(
        None, "use the first so many words of the file only; empty: all", ge=1
    )


class Static(ArrayMethod):
    """h = mean of the vectors of the words that have one; zero where none has; an empty sentence
    counts as ".".
    """

    name = "static"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config: ClassVar[type[MethodConfig]] = StaticConfig

    _tokenizer: Tokenizer | None = None
    _matrix: NDArray[np.float32] | None = None

    @property
    def start_model(self) -> str:
        """Name of the vectors: no base model enters."""
        return str(self.config.vectors)

    @property
    def inputs(self) -> dict[str, str]:
        """Content hash of the vectors."""
        return {"vectors": vectors_hash(self.config.vectors)}

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Read the vectors; a corpus is ignored.

        Raises:
            InputError: no such file, or a line of it that is not a word and its numbers.
        """
        table = read_word_vectors(self.config.vectors, self.config.words)
        self._matrix = table.matrix
        self._tokenizer = word_tokenizer(
            table.row,
            self.config.tokens,
            self.config.lower_case,
            self.config.max_length,
        )
        training: dict[str, Any] = {
            "words": len(table.row),
            "dimensions": int(table.matrix.shape[1]),
        }
        if notes := describe_lost_capitals(table.row, self.config.lower_case):
            training["notes"] = notes
        self.fit_report = FitReport(training)
        return self

    def _require_fit(self) -> tuple[Tokenizer, NDArray[np.float32]]:
        if self._tokenizer is None or self._matrix is None:
            raise NotFitted(f"{self.name} is not fitted yet: call fit() or load() first")
        return self._tokenizer, self._matrix

    def num_parameters(self) -> int:
        """Return the number of values of the vectors."""
        _, matrix = self._require_fit()
        return int(matrix.size)

    def _vectors(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        tokenizer, matrix = self._require_fit()
        vectors = np.zeros((len(texts), matrix.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), CHUNK):
            # The blank makes an empty text one that the tokenizer's normaliser sees.
            numbered = enumerate(texts[start : start + CHUNK], start)
            chunk = [" " + clean(text, row) for row, text in numbered]
            encodings = tokenizer.encode_batch_fast(chunk, add_special_tokens=False)
            places = []
            counts = []
            flat: list[int] = []
            for place, encoding in enumerate(encodings, start):
                if encoding.ids:
                    places.append(place)
                    counts.append(len(encoding.ids))
                    flat += encoding.ids
            if flat:
                ends = np.cumsum(counts)
                starts = np.append(0, ends[:-1])
                sums = np.add.reduceat(matrix[flat], starts)
                vectors[places] = sums / np.array(counts)[:, None]
        return vectors

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the SentenceTransformer layout (a StaticEmbedding), with the method's
        configuration.
        """
        from safetensors.numpy import save_file

        tokenizer, matrix = self._require_fit()
        kind = "sentence_transformers.models.StaticEmbedding"
        modules = [
            {
                "idx": 0,
                "name": "0",
                "path": MODULE,
                "type": kind,
            }
        ]
        # The prompt, one blank, is what `encode` puts before a text as well.
        settings = {
            "prompts": {"blank": " "},
            "default_prompt_name": "blank",
            "similarity_fn_name": "cosine",
        }
        with new_folder(self, path, card) as folder:
            (folder / MODULE).mkdir()
            tokenizer.save(str(folder / MODULE / "tokenizer.json"), pretty=False)
            weights = {"embedding.weight": np.ascontiguousarray(matrix)}
            save_file(weights, folder / MODULE / "model.safetensors")
            write_json(folder / MODULES, modules)
            write_json(folder / CONFIG, settings)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        method = load_unfitted(cls, path)
        method._tokenizer = Tokenizer.from_file(str(Path(path) / MODULE / "tokenizer.json"))
        method._matrix = load_file(Path(path) / MODULE / "model.safetensors")["embedding.weight"]
        return method


def word_tokenizer(
    row: dict[str, int],
    tokens: Literal["space", "punctuation"],
    lower_case: bool,
    length: int | None,
) -> Tokenizer:
    """Return a tokenizer that gives the rows of the known words and nothing for the others.

    A plain list of words cannot say "nothing"; byte-pair encoding without merges and without
    unknown token can: a word in the vocabulary is taken whole, any other falls into characters,
    which the vocabulary does not hold, because every word in it begins with a mark (from the
    private use area, so in no text).
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = {MARK + word: place for word, place in row.items()}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=[], unk_token=None, ignore_merges=True)
    )
    empty = normalizers.Replace(Regex(r"\A\s*\z"), ".")
    if lower_case:
        steps = [normalizers.Lowercase(), empty]
    else:
        steps = [empty]
    tokenizer.normalizer = normalizers.Sequence(steps)
    split = pre_tokenizers.WhitespaceSplit() if tokens == "space" else pre_tokenizers.Whitespace()
    mark = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, mark])
    if length is not None:
        tokenizer.enable_truncation(length)
    return tokenizer
