"""What is left of an STS score when the vectors are cut to fewer dimensions or stored in fewer
bits.

The vectors are those of the STS task: nothing is encoded for it. Cut vectors are compared by their
own cosine. The quantisations are those of two libraries, which give unlike numbers:

| form | numbers | compared by |
|---|---|---|
| st_int8 | unit length; 255 steps between least and largest of each dimension, of all sentences of the set | cosine |
| mteb_int8 | not unit length; steps between those of each side of the pairs: the sides have unlike steps | cosine |
| binary | 1 where a number is above 0, else 0 (both libraries) | cosine |
| hamming | the same bits | share of equal bits |

Sources: `quantize_embeddings` and `EmbeddingSimilarityEvaluator` of sentence-transformers,
`CompressionWrapper` of mteb.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.seeds import numpy_generator
from harness.sources.pair_sets import EMBEDDED_STS
from harness.tasks.base import Array, TaskResult, Vectors, finite, unit_rows
from harness.tasks.protocol import add_number
from harness.tasks.sts import COSINE, ModelOnPairs, cosine, spearman
from harness.tasks.suite import Suite, TaskFamily

if TYPE_CHECKING:
    from harness.sources.pair_sets import Source

WIDTHS = (512, 256, 128, 64, 32, 16)
DRAWS = 10  # random choices of so many dimensions: their mean score is what chance gives
CUTS = {
    "first": "the first dimensions",
    "pca": "principal components of the set's distinct sentences, centred (transductive)",
    "random": f"mean score of {DRAWS} random choices of dimensions",
}
Form = tuple[
    str, float, list[NDArray[Any]]
]  # name, bytes of a sentence, similarities of the pairs (of each draw)


def mteb_int8(vectors: Array) -> NDArray[np.float32]:
    """Codes (n, d) of mteb's `CompressionWrapper`, from -128 to 127; a dimension without spread has
    the code 0.
    """
    x = np.asarray(vectors, dtype=np.float32)
    least = x.min(axis=0)
    with np.errstate(invalid="ignore"):
        extent = x.max(axis=0) - least
        step = extent / np.float32(255)
        codes = np.floor((x - least) / step) - 128
    return np.asarray(np.nan_to_num(codes), dtype=np.float32)


def principal_components(vectors: Array) -> NDArray[np.float64]:
    """Coordinates (n, k) of centred vectors along the k directions of largest variance, the largest
    first; k is the largest of `WIDTHS`, or all.
    """
    from scipy.linalg import eigh  # slow

    x = vectors - vectors.mean(axis=0, dtype=np.float64)
    d = x.shape[1]
    # eigenvectors of the largest eigenvalues, which come last
    largest = (max(0, d - WIDTHS[0]), d - 1)
    _, directions = eigh(x.T @ x, subset_by_index=largest)
    return np.asarray(x @ directions[:, ::-1])


def forms(vectors: Array, left: NDArray[np.intp], right: NDArray[np.intp]) -> Iterator[Form]:
    """Every form of the vectors (n, d) of distinct sentences; `left` and `right` are the rows of
    each pair.
    """
    from sentence_transformers.util.quantization import quantize_embeddings  # slow

    def cosines(x: Array) -> NDArray[Any]:
        return cosine(x[left], x[right])

    d = vectors.shape[1]
    yield "", 4.0 * d, [cosines(vectors)]
    components = principal_components(vectors)
    rng = numpy_generator(0, "compression")
    for k in WIDTHS:
        if k >= d:
            continue
        size = 4.0 * k
        yield f"first_{k}", size, [cosines(vectors[:, :k])]
        yield f"pca_{k}", size, [cosines(components[:, :k])]
        by_draw = []
        for _ in range(DRAWS):
            drawn = rng.permutation(d)[:k]
            by_draw.append(cosines(vectors[:, drawn]))
        yield f"random_{k}", size, by_draw
    unit = unit_rows(vectors).astype(np.float32)
    int8 = np.asarray(quantize_embeddings(unit, "int8"))
    yield "st_int8", float(d), [cosines(int8)]
    left_int8 = mteb_int8(vectors[left])
    right_int8 = mteb_int8(vectors[right])
    yield "mteb_int8", float(d), [cosine(left_int8, right_int8)]
    bits = vectors > 0
    yield "binary", d / 8, [cosines(bits.astype(np.float32))]
    same = bits[left] == bits[right]
    yield "hamming", d / 8, [same.mean(axis=1)]


class CompressionTask(ModelOnPairs):
    """Spearman over all pairs of one set for every form: the metric "spearman", or "spearman_" and
    the form.

    Named "compression:" and the pair set.
    """

    suite = "compression"

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        data = self.pairs.data
        result = TaskResult()
        texts = list(dict.fromkeys(self.texts()))
        place = {text: row for row, text in enumerate(texts)}
        first: list[int] = []
        second: list[int] = []
        grades = []
        for subset in data.subsets:
            first.extend(place[text] for text in subset.sentences1)
            second.extend(place[text] for text in subset.sentences2)
            grades.append(np.asarray(subset.gold, dtype=np.float64))
        left = np.array(first, dtype=np.intp)
        right = np.array(second, dtype=np.intp)
        gold = np.concatenate(grades)
        x, damaged = finite(vectors(texts))
        result.note_damaged(self.name, damaged)
        drawn: dict[str, list[float]] = {}
        for form, size, similarities in forms(x, left, right):
            correlations = [spearman(similar, gold) for similar in similarities]
            value = float(np.mean(correlations))
            metric = f"spearman_{form}" if form else "spearman"
            about = {
                **COSINE,
                "form": form,
                **({"cut": cut} if (cut := CUTS.get(form.split("_")[0])) else {}),
            }
            about |= {
                "pairs": "all at once",
                "preparation": data.preparation,
                "split": self.pairs.split,
            }
            add_number(result, self, metric, value, len(gold), pooling, **about)
            drawn[metric] = [size, value]
        result.figures[self.name] = {"compression": drawn}
        return result


def _task(name: str, source: Source) -> CompressionTask:
    pair_set = name.removeprefix("compression:")
    return CompressionTask(pair_set, "embedded" if pair_set in EMBEDDED_STS else source)


SUITE = Suite(
    ("compression:STS-B", "compression:SICK-R"),
    "STS-B and SICK-R by fewer dimensions (first, principal, random), int8 and bits",
    metric="spearman",
    chance=0.0,
)
EMBEDDED = Suite(
    tuple(f"compression:{name}" for name in EMBEDDED_STS),
    "the embedded pairs by fewer dimensions, int8 and bits",
    metric="spearman",
    chance=0.0,
)
TASKS = TaskFamily((*SUITE.tasks, *EMBEDDED.tasks), _task)
