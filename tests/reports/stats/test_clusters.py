"""The chance of examples that share texts: worked by hand, and how often intervals cover by
simulation.
"""

from __future__ import annotations

import numpy as np

from reports.stats.clusters import chance
from reports.stats.influence import of_spearman


def test_examples_that_share_a_text_count_together():
    # Pairs (1, 2), (2, 3), (4, 5), of which the first two share sentence 2.
    x = np.array([[1.0, 2.0, -3.0]])
    found = chance([(x, np.array([[1, 2], [2, 3], [4, 5]]))])
    assert found.by_examples[0, 0] == 1 + 4 + 9
    assert found.by_texts[0, 0] == 1 + 4 + 9 + 2 * (1 * 2)
    assert found.of(0) == 18


def test_identical_pairs_of_two_tasks_are_one_also_turned_round():
    x, y = np.array([[1.0, -1.0]]), np.array([[3.0, -3.0]])
    found = chance([(x, np.array([[1, 2], [3, 4]])), (y, np.array([[2, 1], [8, 9]]))])
    # (1, 2) and (2, 1): (1 + 3)^2; the others by themselves.
    assert found.by_texts[0, 0] == 16 + 1 + 9


def test_a_pair_of_one_sentence_and_itself_and_examples_of_one_text():
    x = np.array([[2.0, 5.0, 1.0]])
    pairs = chance([(x, np.array([[7, 7], [7, 7], [7, 8]]))])
    assert pairs.by_texts[0, 0] == (2 + 5 + 1) ** 2
    texts = chance([(x, np.array([[7], [7], [8]]))])
    assert texts.by_texts[0, 0] == (2 + 5) ** 2 + 1


def test_the_wider_one_decides_and_differences_take_out_what_rows_share():
    x = np.array([[1.0, -1.0], [1.0, -2.0]])  # examples that move against one another
    found = chance([(x, np.array([[1, 2], [2, 3]]))])
    assert found.by_texts[0, 0] == 0
    assert found.of(0) == 2
    assert (
        found.between(0, 1) == found.between(1, 0) == 1
    )  # only the second example tells the rows apart


def graph(pairs, sentences, generator):
    """Pairs of two tasks; a few sentences stand in many of them, and a third of the second task is
    in the first.
    """
    popular = generator.pareto(1.5, sentences) + 1
    a, b = (generator.choice(sentences, pairs, p=popular / popular.sum()) for _ in range(2))
    ids = np.stack([a, np.where(a == b, (b + 1) % sentences, b)], axis=1)
    other = np.vstack([ids[: pairs // 3], generator.choice(sentences, (pairs - pairs // 3, 2))])
    return [ids, other]


def test_intervals_cover_where_sentences_have_effects_and_those_of_pairs_do_not():
    """Two equal rows, an effect of every sentence and every pair: 93-97 % of the true differences."""
    generator = np.random.default_rng(2)
    tasks = graph(300, 700, generator)
    gold = [generator.uniform(0, 5, len(ids)) for ids in tasks]
    keys = np.vstack([np.sort(ids, axis=1) for ids in tasks])
    _, pair = np.unique(keys, axis=0, return_inverse=True)
    gold = np.split(
        np.concatenate(gold)[np.unique(pair, return_index=True)[1]][pair.ravel()], [300]
    )
    trials, hits = 500, np.zeros(2)
    for _ in range(trials):
        values, moved = [], [[], []]
        for _row in range(2):
            sentence, own = generator.normal(size=700), generator.normal(size=600)[pair.ravel()]
            noise = np.split(own, [300])
            found = [
                of_spearman(y, y + sentence[ids].sum(axis=1) + e)
                for y, ids, e in zip(gold, tasks, noise, strict=True)
            ]
            values.append(np.mean([value for value, _ in found]))
            for task, (_, x) in enumerate(found):
                moved[task].append(x / 2)
        known = chance([(np.stack(x), ids) for x, ids in zip(moved, tasks, strict=True)])
        plain = known.by_examples[0, 0] + known.by_examples[1, 1] - 2 * known.by_examples[0, 1]
        hits += np.abs(values[0] - values[1]) <= 1.96 * np.sqrt([known.between(0, 1), plain])
    covered = hits / trials
    assert 0.93 <= covered[0] <= 0.97
    assert covered[1] < 0.92
