"""Does a vector know the order of its words? A classifier tells sentences from their own words shuffled."""

import hashlib
import random
from functools import cached_property

import numpy as np
from sklearn.linear_model import LogisticRegression

from harness.sources import embedded_rows
from harness.tasks.base import TaskResult, finite
from harness.tasks.protocol import Description, add_score
from harness.tasks.suite import Suite


class WordOrder:
    """Accuracy of a logistic regression on vectors; both forms of a sentence stand on one side of the split."""

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
        result = TaskResult()
        x, damaged = finite(vectors(self.texts()))
        if damaged:
            result.notes.append(f"{self.name}: vectors with NaN or infinity, replaced by 0: {damaged}")
        y = np.tile([0, 1], len(self.pairs))
        train = len(self.pairs) // 2 * 2  # the first half of the sentences, in both forms
        classifier = LogisticRegression(max_iter=1000).fit(x[:train], y[:train])
        description = Description(
            self.name,
            self.source,
            split="test",
            metric="accuracy",
            data=self.sha256,
            preparation="raw text",
            particular={"classifier": "logistic regression, C = 1", "version": 1},
        )
        accuracy = float(classifier.score(x[train:], y[train:]))
        add_score(result, description, suite=self.suite, pooling=pooling, value=accuracy, n=len(y) - train)
        return result


SUITE = Suite(("word-order",), "sentences and their words shuffled, told apart", metric="accuracy", chance=0.5)
