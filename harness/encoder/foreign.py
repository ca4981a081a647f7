"""Models that our encoder does not know (prompts, word vectors, other modules), run by sentence-transformers itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from harness.encoder.layout.loading import refuse_pickled
from harness.encoder.model import Encoder
from harness.encoder.quiet import quiet_transformers
from harness.encoder.sentences import clean
from harness.errors import InputError, UnsupportedModel

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class ForeignEncoder:
    """A SentenceTransformer behind `Encoder.encode`; it can be evaluated, not trained.

    Attributes:
        why: what our own encoder did not understand.
    """

    def __init__(self, model: SentenceTransformer, why: str) -> None:
        self.model = model
        self.why = why

    @property
    def modules(self) -> str:
        """The modules in their order, and the prompt that stands before every text, if there is one."""
        names = " > ".join(type(module).__name__ for module in self.model)
        return f'{names}, prompt "{self.default_prompt}"' if self.default_prompt else names

    @property
    def default_prompt(self) -> str:
        """What stands before every text; empty: nothing."""
        return str(self.model.prompts.get(self.model.default_prompt_name or "", ""))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return torch.device(self.model.device)

    def parameters(self) -> Any:
        """The weights, as of a torch module."""
        return self.model.parameters()

    def to(self, device: str) -> None:
        """Move the weights."""
        self.model.to(device)

    def limit_length(self, tokens: int) -> None:
        """Keep at most so many tokens of a sentence."""
        self.model.max_seq_length = min(tokens, self.model.max_seq_length or tokens)

    def without_prompt(self, name: str) -> None:
        """Put no prompt before texts any more: they bring their own.

        Raises:
            InputError: the model pools without the words of a prompt, which it could not tell from the text.
        """
        if any(getattr(module, "include_prompt", True) is False for module in self.model):
            raise InputError(
                f"{name}: leaves its prompt out of the pooling; it is evaluated with its default one alone"
            )
        self.model.default_prompt_name = None

    def encode(self, sentences: str | Sequence[str], *, show_progress_bar: bool = False, **options: Any) -> Any:
        """Vectors as `Encoder.encode`; the options of that method.

        Raises:
            InputError: something that is not a string.
        """
        if isinstance(sentences, str):
            return self.encode([sentences], show_progress_bar=show_progress_bar, **options)[0]
        texts = [clean(text, row) for row, text in enumerate(sentences)]
        if options.get("device") is not None:
            self.model.to(options.pop("device"))
        if not texts:
            empty = torch.empty(0, int(self.model.get_embedding_dimension() or 0))
            as_tensor = options.get("convert_to_tensor") or not options.get("convert_to_numpy", True)
            return empty if as_tensor else empty.numpy()
        options.pop("precision", None)  # float32 always
        with quiet_transformers():
            vectors = self.model.encode(texts, show_progress_bar=show_progress_bar, **options)
        return vectors.float() if isinstance(vectors, torch.Tensor) else vectors.astype("float32", copy=False)

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the SentenceTransformer layout (safetensors)."""
        with quiet_transformers():
            self.model.save(str(path), create_model_card=False)
        Path(path, "README.md").write_text(card or "# Sentence embeddings\n", "utf-8")


def open_model(name: str) -> Encoder | ForeignEncoder:
    """Any sentence encoder, pooled as its own configuration says: ours, or sentence-transformers' where ours does not
    know a part of it. A plain transformer gets mean pooling.

    Raises:
        InputError: no such model, a damaged one, or one that needs code of its own.
    """
    try:
        return Encoder.load(name)
    except UnsupportedModel as error:
        return run_by_sentence_transformers(name, str(error))


def run_by_sentence_transformers(name: str, why: str) -> ForeignEncoder:
    """A model as sentence-transformers runs it, from a folder that holds no pickled weights.

    Raises:
        InputError: it cannot be loaded, or a module's weights are there as a pickle alone.
    """
    from sentence_transformers import SentenceTransformer

    from harness.sources import resolve_model

    options = {"use_safetensors": True}
    try:
        resolved = Path(resolve_model(name))
        folder = resolved if resolved.is_dir() else _without_pickles(name)
        for file in folder.rglob("pytorch_model*.bin"):  # each module may bring weights
            refuse_pickled(name, file.parent)
        with quiet_transformers():
            model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=False, model_kwargs=options)
    except InputError:
        raise
    except Exception as error:  # whatever a module of a stranger raises
        if "pytorch_model.bin" in str(error):  # a module has no other weights, and these were not downloaded
            raise InputError(
                f'model "{name}": a module beside its transformer has its weights as a pickle alone '
                "(pytorch_model.bin), which is not read; give one with safetensors files"
            ) from None
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"{why}; sentence-transformers cannot load it either: {reason:.200}") from None
    return ForeignEncoder(model.eval(), why)


def _without_pickles(name: str) -> Path:
    """A model of the hub in a folder here: all but what is pickled or made for other libraries."""
    from huggingface_hub import snapshot_download

    others = ["*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt", "*.h5", "*.msgpack", "*.ot", "onnx/*", "openvino/*"]
    return Path(snapshot_download(name, ignore_patterns=others))
