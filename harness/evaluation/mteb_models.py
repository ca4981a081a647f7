"""Models as mteb loads them (`mteb.get_model`), with the prompts of their makers."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from itertools import chain
from typing import Any

import numpy as np

from harness.errors import HarnessError, InputError
from harness.evaluation.outside_models import OutsideModel
from harness.files.printable import describe_error
from harness.tasks.prompts import Prompts

log = logging.getLogger(__name__)

_MARK = "\x00"  # around the task and side of a text
_USUAL = {  # a task of mteb of each type, whose metadata serves for tasks that mteb does not have
    "STS": "STSBenchmark",
    "Classification": "Banking77Classification",
    "PairClassification": "TwitterSemEval2015",
    "Clustering": "TwentyNewsgroupsClustering.v2",
    "Retrieval": "SciFact",
}
_NAMES = {"STS-B": "STSBenchmark"}  # of ours, under another name in mteb


class MakersPrompts(Prompts):
    """The task and side of each text, before it: mteb chooses the prompt from them."""

    def __init__(self) -> None:
        super().__init__({})

    @property
    def label(self) -> str:
        """What enters protocol ids besides the pooling."""
        return f"prompts of its makers, mteb {version('mteb')}"

    def of(self, name: str, kind: str, side: str = "") -> str:
        """Return what names a task, its type and a side."""
        return f"{_MARK}{name}\t{kind}\t{side}{_MARK}"

    @property
    def unfit(self) -> str:
        """Return nothing: which prompts there are is mteb's affair."""
        return ""


class MtebModel(OutsideModel):
    """`mteb:NAME`.

    Args:
        trust_remote_code: its loader may run the code of a repository.

    Raises:
        InputError: mteb has no such model, or its loader runs the code of a repository.
    """

    takes_prompts = False  # but those of its makers

    def __init__(self, model: str, *, trust_remote_code: bool = False) -> None:
        self.name = model
        self.trusted = trust_remote_code
        self.prompts = MakersPrompts()
        self._loaded: Any = None
        self.meta = _find_meta(model)
        self.timed = "API" not in self.meta.framework  # seconds of a network say nothing
        if not trust_remote_code and _runs_code(self.meta):
            raise _refusal(model)

    @property
    def identity(self) -> str:
        """Its name and revision, and the version of mteb, which has its loader and prompts."""
        return f"{self.name} {self.meta.revision} mteb {version('mteb')}"

    def load(self, device: str | None) -> Any:
        """Return what mteb loads.

        Raises:
            InputError: it cannot be loaded here.
        """
        if self._loaded is None:
            import mteb

            try:
                with _remote_code(self.name, self.trusted):
                    self._loaded = mteb.get_model(self.name, device=device)
            except HarnessError:
                raise
            except Exception as error:  # of mteb, of its loaders and their libraries
                said = describe_error(error)
                raise InputError(
                    f'"mteb:{self.name}" cannot be loaded: {said}', key="model"
                ) from error
            if not callable(getattr(self._loaded, "encode", None)):
                raise InputError(
                    f'"mteb:{self.name}" is a {type(self._loaded).__name__}, which makes no vectors',
                    key="model",
                )
        return self._loaded

    def vectors_of(self, texts: list[str], device: str | None) -> Any:
        """Return the vectors of texts; those of one task and side are encoded in one call.

        Raises:
            InputError: it cannot be loaded here.
        """
        model = self.load(device)
        places: dict[str, list[int]] = {}
        plain = []
        for place, text in enumerate(texts):
            _, mark, rest = text.partition(_MARK)
            if mark:
                named, _, alone = rest.partition(_MARK)
            else:
                named, _, alone = ("\tSTS\t", "", text)
            places.setdefault(named, []).append(place)
            plain.append(alone)
        parts = []
        for named, rows in places.items():
            texts_of_prompt = [plain[row] for row in rows]
            parts.append(_encode(model, texts_of_prompt, *named.split("\t")))
        order = np.argsort(list(chain.from_iterable(places.values())))
        return np.concatenate(parts)[order]


def _encode(
    model: Any,
    texts: list[str],
    name: str,
    kind: str,
    side: str,
) -> np.ndarray:
    import torch
    from datasets import Dataset
    from mteb.types import PromptType
    from torch.utils.data import DataLoader

    rows: Any = Dataset.from_dict({"text": texts})
    with torch.inference_mode():
        vectors = model.encode(
            DataLoader(rows, batch_size=64),
            task_metadata=_metadata(name, kind),
            hf_split="test",
            hf_subset="default",
            prompt_type=PromptType(side) if side else None,
            batch_size=64,
            show_progress_bar=False,
        )
    if isinstance(vectors, torch.Tensor):
        vectors = vectors.detach().float().cpu().numpy()
    return np.asarray(vectors, dtype=np.float32)


@cache
def _metadata(name: str, kind: str) -> Any:
    """Return mteb's metadata of a task; of one that it does not have, that of a task of its type."""
    import mteb

    known = _NAMES.get(name, name)
    if known:
        try:
            return mteb.get_task(known).metadata
        except KeyError:
            pass
    usual = mteb.get_task(_USUAL.get(kind, _USUAL["STS"])).metadata
    return usual.model_copy(update={"name": name or usual.name, "prompt": None})


def _find_meta(name: str) -> Any:
    """Return what mteb says of a model.

    Raises:
        InputError: it knows no such model.
    """
    import mteb
    from mteb.models.model_implementations import MODEL_REGISTRY

    from harness.config import nearest

    if name not in MODEL_REGISTRY:
        raise InputError(
            f'mteb has no model "{name}"{nearest(name, list(MODEL_REGISTRY))}', key="model"
        )
    return mteb.get_model_meta(name)


def _runs_code(meta: Any) -> bool:
    """Return True if the loader of a model is known to run the code of a repository."""
    if dict(meta.loader_kwargs or {}).get("trust_remote_code"):
        return True
    try:
        source = inspect.getsource(meta.loader)
    except (OSError, TypeError):  # a partial function, say: the guard of loading sees it
        return False
    return "trust_remote_code=True" in source or '"trust_remote_code": True' in source


def _refusal(name: str) -> InputError:
    return InputError(
        f'"mteb:{name}" runs the code of a repository',
        key="model",
        remedy="read that code, then set trust_remote_code = true in the row "
        "(harness evaluate: --trust-remote-code)",
    )


@contextmanager
def _remote_code(name: str, trusted: bool) -> Iterator[None]:
    """Refuse code of a repository, whatever a loader says, unless it is trusted.

    All of such code comes through one function of transformers.
    """
    from transformers import dynamic_module_utils

    def refuse(*_: Any, **__: Any) -> Any:
        raise _refusal(name)

    fetch = dynamic_module_utils.get_cached_module_file
    if not trusted:
        dynamic_module_utils.get_cached_module_file = refuse
    try:
        yield
    finally:
        dynamic_module_utils.get_cached_module_file = fetch
