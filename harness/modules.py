"""A saved method as a module of sentence-transformers, where that library's own modules cannot express it.

    SentenceTransformer("FOLDER", trust_remote_code=True)           # runs this class, and nothing of the folder's
    SentenceTransformer(modules=[SavedMethod.load("FOLDER")])       # the same without that flag

modules.json of such a folder names `harness.modules.SavedMethod`, a path that stays. From 6.0 on sentence-transformers
wants the flag for every class that is not its own, also of an installed package. What stock modules can hold is saved
as those, and opens anywhere.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import torch
from sentence_transformers.sentence_transformer.modules import InputModule

from harness.errors import InputError, NotFitted
from harness.evaluation.any_model import saved_method
from harness.method import Method

__all__ = ["SavedMethod"]


class SavedMethod(InputModule):
    """Texts in, the vectors of `Method.encode` out.

    Attributes:
        method: the fitted method; where it is one encoder, that follows `to` and counts among the parameters.
    """

    def __init__(self, method: Method) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.method = method
        self.register_buffer("place", torch.empty(0), persistent=False)  # knows the device where nothing else does
        with suppress(NotFitted):  # several encoders, or none
            self.encoder = method.encoder

    def preprocess(self, inputs: Any, prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """The texts as they are, after the prompt: the method has tokenizers of its own."""
        return {"texts": [f"{prompt or ''}{text}" for text in inputs]}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Adds "sentence_embedding": (n, d) float32."""
        texts = features["texts"]
        device = str(self.place.device)
        vectors = self.method.encode(texts, batch_size=len(texts), convert_to_tensor=True, device=device)
        return {**features, "sentence_embedding": vectors}

    def get_embedding_dimension(self) -> int:
        """d."""
        return len(self.method.encode("."))

    @classmethod
    def load(  # type: ignore[override]  # its options by name, as the library hands them over
        cls, model_name_or_path: str, subfolder: str = "", **options: Any
    ) -> Self:
        """From a folder that `Method.save` wrote, or a repository of the hub that holds one.

        Raises:
            InputError: neither, or a method that is not installed.
        """
        keys = ("token", "cache_folder", "revision", "local_files_only")
        where = {key: options[key] for key in keys if key in options}
        folder = cls.load_dir_path(str(model_name_or_path), subfolder, **where)
        if folder is None:
            raise InputError(f"{model_name_or_path}: no such folder or repository")
        return cls(saved_method(folder))

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the method (safetensors and JSON) among what is in `output_path` already."""
        with tempfile.TemporaryDirectory() as folder:
            self.method.save(Path(folder) / "method")
            shutil.copytree(Path(folder) / "method", output_path, dirs_exist_ok=True)
