"""Prompts: texts that a model wants before its inputs, by kind of task, as in mteb and
sentence-transformers.

A key is a task's name, one of mteb's types of tasks ("STS", "Classification", "Retrieval", ...),
"query" or "document", or a name or type with "-query" or "-document". What fits best counts, as in
mteb: name and side, name, type and side, type, side. "default" is for all that is left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.printable import join_some
from harness.files.reading import read_json
from harness.tasks.base import Array, Task, Vectors, task_key
from harness.tasks.vectors import EmbeddingTable, Origin

_TYPES = {
    "sts": "STS",
    "multilingual-sts": "STS",
    "transfer": "Classification",
    "probing": "Classification",
    "downstream": "Classification",
    "embedded-transfer": "Classification",
    "knn": "Classification",
    "own-classification": "Classification",
    "own-pair-classification": "PairClassification",
    "own-clustering": "Clustering",
}
_ONCE_STS = ("embedded-transfer", "knn")  # suites whose tasks had the prompts of STS at first


@dataclass(frozen=True)
class Prompts:
    """Attributes:
    by_key: key -> text, as above.
    used: the keys that a task has used.
    tried: the keys that tasks have looked for, in that order.
    """

    by_key: Mapping[str, str]
    used: set[str] = field(default_factory=set, compare=False, repr=False)
    tried: dict[str, None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def label(self) -> str:
        """What enters protocol ids besides the pooling."""
        by_key = dict(sorted(self.by_key.items()))
        return f"prompts {json.dumps(by_key, ensure_ascii=False)}"

    def label_of(self, task: Any) -> str:
        """What enters the protocol ids of a task of ours besides the pooling."""
        if str(getattr(task, "suite", "")) in _ONCE_STS:
            return f"{self.label} of Classification"
        return self.label

    def of(self, name: str, kind: str, side: str = "") -> str:
        """The prompt for one side ("query", "document" or none) of a task of a kind."""
        if side:
            names = [f"{name}-{side}", name, f"{kind}-{side}", kind, side]
        else:
            names = [name, kind]
        self.tried.update(dict.fromkeys((*names, "default")))
        for key in (*names, "default"):
            if key in self.by_key:
                self.used.add(key)
                return self.by_key[key]
        return ""

    def of_task(self, task: Any) -> str:
        """The prompt for a task of ours."""
        suite = str(getattr(task, "suite", ""))
        kind = "STS"
        for start, of_suite in _TYPES.items():
            if suite.startswith(start):
                kind = of_suite
                break
        return self.of(task.name, kind)

    def before(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Key of a task -> its prompt, of those whose texts have one side."""
        prompts = {}
        for task in tasks:
            if not of_mteb(task):
                prompts[task_key(task)] = self.of_task(task)
        return prompts

    @property
    def unfit(self) -> str:
        """What a reader should know where no task has used any of them."""
        if self.used:
            return ""
        given = ", ".join(f'"{key}"' for key in self.by_key)
        wanted = join_some([f'"{key}"' for key in self.tried], 6)
        return f"no prompt was used: no task here looks for {given}, but for {wanted}"


def read_prompts(given: Mapping[str, str] | str | Path | None) -> Any:
    """Return prompts by key; those of a JSON file, where a path is given. "own" and None are
    returned unchanged.

    Raises:
        InputError: no such file, or not a text for each key.
    """
    if given is None or given == "own":
        return given
    file = None
    prompts: Any = given
    if isinstance(given, str | Path):
        file = Path(given)
        prompts = read_json(file)
    are_texts = isinstance(prompts, Mapping)
    if are_texts:
        are_texts = all(isinstance(text, str) for text in prompts.values())
    if not are_texts:
        raise InputError(
            "expected texts by kind of task",
            file=file,
            key="prompts",
            remedy='as {"STS": "query: "}',
        )
    return prompts


def of_mteb(task: Task) -> bool:
    """Is it one of mteb's, where the side of each text is known only when its vector is requested?"""
    return hasattr(task, "task_name")


class PromptedVectors:
    """The vectors of texts behind a prompt, out of a table that encodes what it lacks."""

    def __init__(self, table: EmbeddingTable, prompts: Prompts, prompt: str) -> None:
        self.table = table
        self.prompts = prompts
        self.prompt = prompt

    @property
    def origin(self) -> Origin:
        """Whose vectors they are."""
        return self.table.origin

    def __call__(self, texts: Sequence[str]) -> Array:
        """(len(texts), d) float32."""
        return self.table([self.prompt + text for text in texts])

    def of_mteb(self, name: str, kind: str, side: str) -> Vectors:
        """The same with the prompt of a task of mteb's."""
        prompt = self.prompts.of(name, kind, side)
        return PromptedVectors(self.table, self.prompts, prompt)
