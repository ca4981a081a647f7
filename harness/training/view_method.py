"""The base class of trained methods whose config says how two views of an item are made."""

from __future__ import annotations

from torch.utils.data import Subset

from harness.encoder.pooling import PROMPT
from harness.errors import InputError
from harness.method import Supervision, Text
from harness.sources import Corpus
from harness.training.batches import BatchStream
from harness.training.loop import TrainedMethod


class ViewMethod(TrainedMethod):
    """A method whose config is a `ViewConfig` too: its view decides which text it needs and what
    was known of it.

    >>> from harness import registry
    >>> infonce = registry.load(registry.METHODS, "infonce")
    >>> issubclass(infonce, ViewMethod), infonce(infonce.Config(view="paraphrase")).text
    (True, 'pairs')
    """

    @property
    def text(self) -> Text:
        if self.config.of_documents:
            return "documents"
        if "paraphrase" in self.config.views:
            return "pairs"
        return self.card.text

    @property
    def supervision(self) -> Supervision:
        if "paraphrase" in self.config.views and self.config.pairs_are_labelled:
            return "supervised"
        return self.card.supervision

    def stream(self, corpus: Corpus, seed: int) -> BatchStream:
        """Return the batches of the corpus; with view = "sentence_crop" only of the documents that
        have two crops, and the run reports how many those are.

        Raises:
            InputError: fewer than two documents have.
        """
        if "sentence_crop" not in self.config.views:
            return super().stream(corpus, seed)
        usable = []
        for place, text in enumerate(corpus):
            if self.config.crops(text):
                usable.append(place)
        if len(usable) < 2:
            raise InputError(
                f"corpus {corpus.uri}: {len(usable)} of {len(corpus)} documents have two "
                f"crops of {self.config.sentence_crop} sentences of {self.config.shortest} "
                f"to {self.config.longest} characters",
                file=corpus.uri,
                remedy="give other documents, lower sentence_crop or shortest, or raise longest",
            )
        stream = super().stream(Subset(corpus, usable), seed)  # type: ignore[arg-type]
        too_short = len(corpus) - len(usable)
        stream.about = {"documents": len(usable), "documents_too_short": too_short}
        return stream

    @property
    def inputs(self) -> dict[str, str]:
        """Hash of WordNet, and that tokens of a template are left alone, which earlier versions
        changed as those of a sentence.
        """
        inputs = {}
        if self.config.of_tokens and self.config.pooling.startswith(PROMPT):
            inputs["template"] = "unchanged"
        if self.config.needs_wordnet:
            from harness.views.wordnet import load

            inputs["wordnet"] = load().sha256
        return inputs
