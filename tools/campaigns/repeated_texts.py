"""Measures how often intervals cover on the real STS sets when sentences have effects: a table of
docs/statistics.md.

    HF_ENDPOINT=... python -m tools.campaigns.repeated_texts

The sets are the hub's, with their sentences and pairs. Two rows of equal quality score every pair
as its gold score
plus noise: a part for each sentence, a part for each pair (equal for identical pairs of two tasks),
with the given shares; "product": vectors with errors, so that the effect of a sentence depends on
the other one. Each trial draws new gold scores from those of the set. Measured: the ratio of the
standard error to the true one and the coverage of the interval, of the difference (its true value
is 0) and of a row's mean.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from harness.results.text_ids import text_ids
from harness.sources.pair_sets import Source, load_sts
from harness.tasks.sts import STS
from reports.stats.clusters import chance
from reports.stats.influence import of_spearman
from tools.campaigns.measured import FOLDER, Figure, Part, main, share

FILE = FOLDER / "repeated_texts.csv"
SOURCE: Source = "senteval"
WAYS = ("pairs", "sentences (this)", "connected groups", "sub-corpora")
EFFECTS = {
    "pairs": 0.0,
    "0.3 sentences": 0.3,
    "0.6 sentences": 0.6,
    "sentences": 1.0,
    "both sentences": None,
}


class Sets:
    """Test pairs of some tasks of one source, side by side."""

    def __init__(self, source: Source, tasks: tuple[str, ...]) -> None:
        sets = [load_sts(task, source=source) for task in tasks]
        self.gold = [np.concatenate([part.gold for part in one.subsets]) for one in sets]
        self.ids = []
        for one in sets:
            first = [text for part in one.subsets for text in part.sentences1]
            second = [text for part in one.subsets for text in part.sentences2]
            self.ids.append(np.stack([text_ids(first), text_ids(second)], axis=1))
        self.ends = np.cumsum([len(g) for g in self.gold])[:-1]
        ids = np.vstack(self.ids)
        sentences, places = np.unique(ids, return_inverse=True)
        self.places = places.reshape(ids.shape)
        self.sentences = len(sentences)
        _, self.first, pair = np.unique(
            np.sort(self.places, axis=1), axis=0, return_index=True, return_inverse=True
        )
        self.pair = pair.ravel()
        n = len(ids)
        edges = csr_matrix((np.ones(n), tuple(self.places.T)), shape=(self.sentences,) * 2)
        self.group = connected_components(edges)[1][self.places[:, 0]]
        names: list[str] = []
        for one in sets:
            for part in one.subsets:
                names += [f"{one.task} {part.name}"] * len(part.gold)
        self.corpus = np.unique(names, return_inverse=True)[1]

    def draw_gold(self, generator: np.random.Generator) -> np.ndarray:
        """Draw a gold score for every pair from those of all: ranks in the task, since scales differ."""
        ranks = [np.argsort(np.argsort(gold, kind="stable")) / len(gold) for gold in self.gold]
        return generator.permutation(np.concatenate(ranks)[self.first])[self.pair]

    def score(self, gold: np.ndarray, score: np.ndarray) -> tuple[float, list[np.ndarray]]:
        """Return the mean over tasks, and the pairs' influences on it."""
        by_task = zip(np.split(gold, self.ends), np.split(score, self.ends), strict=True)
        parts = [of_spearman(of_gold, of_score) for of_gold, of_score in by_task]
        mean = float(np.mean([value for value, _ in parts]))
        return mean, [influences / len(parts) for _, influences in parts]

    def variances(self, influences: list[np.ndarray]) -> np.ndarray:
        found = chance([([x], ids) for x, ids in zip(influences, self.ids, strict=True)])
        x = np.concatenate(influences)
        others = [np.square(np.bincount(groups, x)).sum() for groups in (self.group, self.corpus)]
        return np.array([found.by_examples[0, 0], found.of(0), *others])


def noise(sets: Sets, share: float | None, generator: np.random.Generator) -> np.ndarray:
    """Draw the noise of one row, of variance 1."""
    sentence: np.ndarray = generator.normal(size=sets.sentences)[sets.places].sum(axis=1) / 2**0.5
    if share is None:
        vectors = generator.normal(size=(sets.sentences, 4))[sets.places]
        products: np.ndarray = np.prod(vectors, axis=1).sum(axis=1)
        return (sentence + products / 2) / 2**0.5
    own = generator.normal(size=len(sets.first))[sets.pair]
    both: np.ndarray = share**0.5 * sentence + (1 - share) ** 0.5 * own
    return both


def measure_repeated(trials: int = 300) -> Iterator[Figure]:
    """Yield, for each kind of effects, the ratio of standard errors and the coverage by each way to
    redraw the pairs.
    """
    sets = Sets(SOURCE, STS)
    for name, part in EFFECTS.items():
        generator = np.random.default_rng(1)
        values = []
        errors = []
        for _ in range(trials):
            gold = sets.draw_gold(generator)
            one, of_one = sets.score(gold, gold * 3 + 0.8 * noise(sets, part, generator))
            other, of_other = sets.score(gold, gold * 3 + 0.8 * noise(sets, part, generator))
            apart = [a - b for a, b in zip(of_one, of_other, strict=True)]
            values.append((one - other, one))
            errors.append([np.sqrt(sets.variances(x)) for x in (apart, of_one)])
        off = np.array(values)
        known = np.array(errors)
        off[:, 1] -= off[:, 1].mean()
        for place, what in enumerate(("a difference", "a mean")):
            ratios = known[:, place].mean(axis=0) / off[:, place].std()
            inside = np.abs(off[:, place, None]) <= 1.96 * known[:, place]
            cell = f"effects of {name}, {what}"
            for way, ratio, covered in zip(WAYS, ratios, inside.sum(axis=0), strict=True):
                error = float(ratio) / (2 * trials) ** 0.5  # of the true one, which is drawn too
                yield Figure("repeated", cell, f"{way}: ratio", float(ratio), error, trials)
                least = 94.0 if way == WAYS[1] else None
                name = f"{way}: covers"
                yield share("repeated", cell, name, int(covered), trials, at_least=least)


PARTS: dict[str, Part] = {"repeated": measure_repeated}

if __name__ == "__main__":
    main(FILE, PARTS, __doc__ or "")
