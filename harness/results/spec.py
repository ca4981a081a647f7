"""The specification of a run: everything that decides its numbers, and the id that follows from it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from harness.files.hashing import content_id
from harness.results.code import Code, method_code
from harness.seeds import Stream, seed_of

NUMERICS = 1
"""Version of the numerical code that all runs share: the training loop, the encoder, views, batches
and scoring. Raise it when that code changes numbers: every run is then trained and scored again
(tests/golden says when).
"""


class RunSpec(BaseModel):
    """One run: a method with its configuration, on one base model, text and seed.

    Any process can execute it: nothing else has to be planned. Labels, tasks and the place of
    execution are no part of it, so rows of several comparisons share a run.

        >>> spec = RunSpec(method="simcse", config={"temperature": 0.05}, base_model="embedded:mini-bert", seed=1)
        >>> spec.id == spec.model_copy(update={"base_model": "a copy of it"}).id  # by content, not by name
        True
        >>> spec.id == spec.model_copy(update={"seed": 2}).id
        False

    Attributes:
        method, version: name of the method and the version of its code (`method_version`).
        code: what `version` was hashed from, file -> hash; empty where it is declared.
        numerics: version of the numerical code that all runs share (`NUMERICS`).
        config: the whole resolved configuration.
        base_model, model: name of the base model, and its content hash or commit.
        seed, vary, held: the seed; with `vary`, of these random streams only, while the others use
            `held`.
        deterministic: no seed enters the method.
        corpus: the training text: uri, kind, limit, columns, count, sha256; None for methods that
            learn from none.
        inputs: name -> content hash of what else the configuration refers to, such as word vectors.
        by_content: keys of the configuration whose values name what is hashed in `inputs`.
        dev: the set that selects checkpoints: task, source, pairs, sha256; None where none does.
        max_steps: upper bound on the training steps.
        precision: of training; None for methods that are not trained by steps.
        most_sentences: in a rehearsal, tasks that ask for more sentences than this are left out.
        encoded_sentences: in a rehearsal, how many sentences of the tasks are encoded; None for all.
        missing: why the run cannot be executed here; empty for a run that can.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    version: int | str = 1
    code: dict[str, str] = {}
    numerics: int = NUMERICS
    config: dict[str, Any]
    base_model: str
    model: str = ""
    seed: int
    vary: tuple[Stream, ...] = ()
    held: int | None = None
    deterministic: bool = False
    corpus: dict[str, Any] | None = None
    inputs: dict[str, str] = {}
    by_content: tuple[str, ...] = ()
    dev: dict[str, Any] | None = None
    max_steps: int | None = None
    precision: str | None = None
    most_sentences: int | None = None
    encoded_sentences: int | None = None
    missing: str = ""

    @property
    def id(self) -> str:
        """Hash of what decides the numbers: content and not names, so a moved corpus or model keeps
        its runs.
        """
        whole = self.model_dump(
            exclude={
                *("base_model", "code", "corpus", "dev", "seed", "vary", "held", "missing"),
                "by_content",
            }
        )
        for key in self.by_content:
            whole["config"].pop(key, None)
        whole["corpus"] = self.corpus and self.corpus["sha256"]
        whole["dev"] = self.dev and self.dev["sha256"]
        if self.deterministic:
            whole["seed"] = None
        else:
            whole["seed"] = [self.seed, self.vary, self.held]
        if self.encoded_sentences is None:
            whole.pop("encoded_sentences")  # so that runs from before the field keep their ids
        if self.missing:
            whole["missing"] = self.base_model
        return content_id(whole)

    @property
    def random_seed(self) -> int:
        """The seed as `harness.seeds` takes it: a `PartSeed` where only some streams vary."""
        return seed_of(
            {
                "seed": self.seed,
                "vary": list(self.vary),
                "held": self.held or 0,
            }
        )

    @property
    def trained(self) -> bool:
        """Does `fit` learn from text?"""
        return self.corpus is not None

    @property
    def finished_model(self) -> bool:
        """Is it a model that exists, scored as it is, whatever the comparison's base models?"""
        return self.corpus is None and "model" in self.config

    @property
    def rehearsal(self) -> bool:
        """Is it a run of `--rehearse`?"""
        return self.most_sentences is not None


def method_version(kind: type) -> int | str:
    """Return the version of a method's code, as `harness.results.code.method_code` finds it.

    Raises:
        InputError: the class declares no version and its source cannot be read.
    """
    return method_code(kind).version


def scoring_version(task: Any, code: Code) -> str:
    """Return the version of the code that scores a task: a change of it makes scores due again,
    without training.

    That of a task of a file also has a hash of what the file holds.
    """
    content = getattr(task, "content", "")
    version = f"{NUMERICS}.{code.version}"
    if content:
        return f"{version}.{content}"
    return version
