"""Modules of sentence-transformers for what that library's own cannot express.

    SentenceTransformer("FOLDER", trust_remote_code=True)           # runs this class, and nothing
    of the folder's SentenceTransformer(modules=[SavedMethod.load("FOLDER")])       # the same
    without that flag

modules.json of such a folder names `harness.modules.SavedMethod`, a path that stays. From 6.0 on
sentence-transformers wants the flag for every class that is not its own, also of an installed
package. What stock modules can hold is saved as those, and opens anywhere. Of the templates in
`harness.encoder.prompts` an echo is saved as stock modules around `SecondCopy`, a prompt with
several [MASK]s around `LastMask`.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import torch
from sentence_transformers.base.modules import Module
from sentence_transformers.sentence_transformer.modules import InputModule

from harness.encoder.pooling import one_token
from harness.encoder.prompts import EchoFrame
from harness.errors import InputError, NotFitted
from harness.evaluation.any_model import saved_method
from harness.method import Method

__all__ = ["LastMask", "SavedMethod", "SecondCopy"]


class SavedMethod(InputModule):
    """Texts in, the vectors of `Method.encode` out.

    Attributes:
        method: the fitted method; where it is one encoder, that follows `to` and counts among the
            parameters.
    """

    def __init__(self, method: Method) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.method = method
        self.register_buffer(
            "place", torch.empty(0), persistent=False
        )  # knows the device where nothing else does
        with suppress(NotFitted):  # several encoders, or none
            self.encoder = method.encoder

    def preprocess(self, inputs: Any, prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """The texts as they are, after the prompt: the method has tokenizers of its own."""
        return {"texts": [f"{prompt or ''}{text}" for text in inputs]}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Adds "sentence_embedding": (n, d) float32."""
        texts = features["texts"]
        device = str(self.place.device)
        vectors = self.method.encode(
            texts,
            batch_size=len(texts),
            convert_to_tensor=True,
            device=device,
        )
        return {**features, "sentence_embedding": vectors}

    def get_embedding_dimension(self) -> int:
        """d."""
        return len(self.method.encode("."))

    @classmethod
    def load(  # type: ignore[override]  # its options by name, as the library hands them over
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        **options: Any,
    ) -> Self:
        """From a folder that `Method.save` wrote, or a repository of the hub that holds one.

        Raises:
            InputError: neither, or a method that is not installed.
        """
        keys = ("token", "cache_folder", "revision", "local_files_only")
        where = {key: options[key] for key in keys if key in options}
        folder = cls.load_dir_path(str(model_name_or_path), subfolder, **where)
        if folder is None:
            raise InputError("no such folder or repository", file=model_name_or_path)
        return cls(saved_method(folder))

    def save(
        self,
        output_path: str,
        *args: Any,
        safe_serialization: bool = True,
        **kwargs: Any,
    ) -> None:
        """Write the method (safetensors and JSON) among what is in `output_path` already."""
        with tempfile.TemporaryDirectory() as folder:
            self.method.save(Path(folder) / "method")
            shutil.copytree(Path(folder) / "method", output_path, dirs_exist_ok=True)


class _Chosen(Module):
    """Leaves some tokens of each row to the pooling that follows."""

    def pooling_mask(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """`mask` (n, length) without the other tokens of the rows `ids` (n, length)."""
        raise NotImplementedError

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Changes "attention_mask".

        Raises:
            InputError: rows without such tokens, or laid end to end without padding.
        """
        if "cu_seq_lens_q" in features:
            kind = type(self).__name__
            raise InputError(
                f"{kind} needs padded rows",
                key=kind,
                remedy="open the model without unpadded flash attention",
            )
        mask = self.pooling_mask(features["input_ids"], features["attention_mask"])
        without = {
            key: value for key, value in features.items() if key != "token_weights_sum"
        }  # of all tokens
        return {**without, "attention_mask": mask}

    def save(
        self,
        output_path: str,
        *args: Any,
        safe_serialization: bool = True,
        **kwargs: Any,
    ) -> None:
        """Write config.json."""
        self.save_config(output_path)


class LastMask(_Chosen):
    """Leaves the last mask token of a template with several to the pooling that follows.

    >>> import torch
    >>> ids = torch.tensor([[9, 4, 5, 4, 8]])
    >>> module = LastMask("prompt:...", token=4)
    >>> module({"input_ids": ids, "attention_mask": torch.ones_like(ids)})["attention_mask"].tolist()
    [[0, 0, 0, 1, 0]]
    """

    config_keys: list[str] = ["pooling", "token"]  # noqa: RUF012  as the library declares it

    def __init__(self, pooling: str, token: int) -> None:
        """`pooling` is the rule that this is a part of, with its template; `token` the id of the
        mask token.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.pooling = pooling
        self.token = token

    def pooling_mask(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return one_token(one_token(mask, ids == self.token))


class SecondCopy(_Chosen):
    """Leaves the tokens of a sentence's second copy to the pooling that follows.

    >>> import torch
    >>> ids = torch.tensor([[9, 4, 5, 8, 4, 5]])
    >>> module = SecondCopy("echo", before=1, between=1, after=0)
    >>> module({"input_ids": ids, "attention_mask": torch.ones_like(ids)})["attention_mask"].tolist()
    [[0, 0, 0, 0, 1, 1]]
    """

    config_keys: list[str] = ["pooling", "before", "between", "after"]  # noqa: RUF012  as the library declares it

    def __init__(self, pooling: str, before: int, between: int, after: int) -> None:
        """`pooling` is the rule that this is a part of, with its template; the others count the
        template's tokens.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.pooling = pooling
        self.before = before
        self.between = between
        self.after = after

    def pooling_mask(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return EchoFrame(self.before, self.between, self.after).second(ids, mask)
