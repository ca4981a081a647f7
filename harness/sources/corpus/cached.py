"""What of a corpus is on this machine already."""

from __future__ import annotations

from harness.sources.corpus.catalogue import NamedCorpus
from harness.sources.corpus.kept_text import kept


def cached(corpus: NamedCorpus) -> str:
    """Its file in the hub's cache, or the number of texts kept of its data set, in words; "" where nothing is here."""
    from huggingface_hub import try_to_load_from_cache

    organisation, name, *file = corpus.uri.partition("?")[0].removeprefix("hf://datasets/").split("/", 2)
    repository = f"{organisation}/{name}"
    if file:
        found = try_to_load_from_cache(repository, file[0], repo_type="dataset")
        return "here" if isinstance(found, str) else ""
    folders = [folder for folder, about in kept() if about["request"]["table"]["repository"] == repository]
    size = sum(file.stat().st_size for folder in folders for file in folder.iterdir())
    return f"{len(folders)} selection{'s' if len(folders) != 1 else ''} here, {size / 1e6:,.1f} MB" if folders else ""
