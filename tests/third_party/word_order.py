"""Does a vector know the order of its words? A classifier tells sentences from their own words
shuffled.
"""

import hashlib
import random
from functools import cached_property

import numpy as np

from harness.sources import embedded_rows
from harness.tasks.base import TaskResult, finite
from harness.tasks.protocol import add_accuracy


class WordOrder:
    """Accuracy of a logistic regression on vectors; both forms of a sentence are on one side of the
    split.
    """

    name = "word-order"
    suite = "order"
    source = "embedded"

    @cached_property
    def pairs(self):
        """Sentences, each with its words in another order."""
        draw = random.Random(0)
        sentences = [row["text"] for row in embedded_rows("sentences", ("a",))][:300]
        shuffled = [" ".join(draw.sample(words, len(words))) for words in map(str.split, sentences)]
        return [(a, b) for a, b in zip(sentences, shuffled, strict=True) if a != b]

    @property
    def sha256(self):
        return hashlib.sha256(repr(self.pairs).encode()).hexdigest()

    def texts(self):
        return [text for pair in self.pairs for text in pair]

    def evaluate(self, vectors, *, pooling):
        from sklearn.linear_model import (
            LogisticRegression,
        )  # slow: not imported by whoever lists tasks

        x, _ = finite(vectors(self.texts()))
        y = np.tile([0, 1], len(self.pairs))
        half = len(self.pairs) // 2 * 2  # the first half of the sentences, in both forms
        classifier = LogisticRegression(max_iter=1000).fit(x[:half], y[:half])
        right = classifier.predict(x[half:]) == y[half:]
        sentence = np.arange(len(right)) // 2  # both forms of one are no independent evidence
        how = {"classifier": "logistic regression, C = 1"}
        result = TaskResult()
        add_accuracy(result, self, right, sentence, pooling, **how)
        return result
