"""Training text and selection sets, each read once per process."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from harness.errors import InputError, OutOfReach
from harness.runs.experiment import CorpusSettings, DevSettings

if TYPE_CHECKING:
    from harness.sources import Corpus
    from harness.tasks.sts import DevSet


@lru_cache(maxsize=16)
def _load_text(settings: str) -> Corpus:
    from harness.sources import load_corpus

    c = CorpusSettings.model_validate_json(settings)
    try:
        return load_corpus(c.uri, kind=c.kind, columns=c.columns, limit=c.limit)
    except OutOfReach as error:
        embedded = f'embedded: --set corpus.uri="embedded:{c.kind}"'
        raise InputError(f'{error} (corpus "{c.uri}" asks for it; {embedded})') from None


@lru_cache(maxsize=4)
def _load_dev(settings: str) -> DevSet:
    return DevSettings.model_validate_json(settings).load()


def load_text(settings: CorpusSettings) -> Corpus:
    """The text that settings name.

    Raises:
        InputError: it is not available, or is not what the settings say.
    """
    return _load_text(settings.model_dump_json())


def load_dev(settings: DevSettings) -> DevSet:
    """The set that selects checkpoints.

    Raises:
        InputError: it is not available.
    """
    return _load_dev(settings.model_copy(update={"every": None}).model_dump_json())


def forget_data() -> None:
    """Read everything again on its next use: files may have changed since the last call in this process."""
    _load_text.cache_clear()
    _load_dev.cache_clear()
