"""Models that our encoder does not know (word vectors, other modules), run by
sentence-transformers; and prompts that the makers of a model wrote into its configuration.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from harness.encoder.layout import CONFIG, MODULES, check_is_encoder, model_folder, modules_of
from harness.encoder.loading import check_length, positions_of, transformer_folder
from harness.encoder.model import Encoder
from harness.encoder.precision import convert
from harness.encoder.quiet import quiet_transformers
from harness.encoder.sentences import clean
from harness.errors import InputError, UnsupportedModel
from harness.files.printable import first_line
from harness.files.reading import read_json
from harness.machine.progress import encoding_bar

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class ForeignEncoder:
    """A SentenceTransformer with the interface of `Encoder.encode`; it can be evaluated, not
    trained.

    Attributes:
        why: what our own encoder does not support.
    """

    dtype: str = "fp32"

    def __init__(self, model: SentenceTransformer, why: str) -> None:
        self.model = model
        self.why = why

    @property
    def module_names(self) -> str:
        """The modules in their order, and their precision where it is not float32."""
        names = " > ".join(type(module).__name__ for module in self.model)
        kinds = set()
        for parameter in self.model.parameters():
            kinds.add(str(parameter.dtype).removeprefix("torch."))
        if kinds - {"float32", "float64"}:  # one that was given as an object
            names += f", in {' and '.join(sorted(kinds))}"
        return names

    @property
    def modules(self) -> str:
        """The modules, and the prompt that is put before every text, if there is one."""
        if self.default_prompt:
            return f'{self.module_names}, prompt "{self.default_prompt}"'
        return self.module_names

    @property
    def default_prompt(self) -> str:
        """What is put before every text; empty: nothing."""
        name = self.model.default_prompt_name or ""
        return str(self.model.prompts.get(name, ""))

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

    def set_dtype(self, dtype: str) -> None:
        """Compute in `dtype` ("fp32", "bf16" or "fp16").

        Raises:
            InputError: an unknown name.
        """
        convert(self.model, dtype)
        self.dtype = dtype

    def set_length(self, tokens: int) -> None:
        """Cut sentences to so many tokens, whatever its configuration says.

        Raises:
            InputError: a transformer without positions for as many.
        """
        from transformers import PreTrainedModel

        transformer = getattr(self.model[0], "auto_model", None)
        if isinstance(transformer, PreTrainedModel):
            check_length("the model", tokens, positions_of(transformer))
        self.model.max_seq_length = tokens

    def encode(
        self,
        sentences: str | Sequence[str],
        *,
        show_progress_bar: bool = False,
        **options: Any,
    ) -> Any:
        """Vectors as `Encoder.encode`, with the options of that method.

        Raises:
            InputError: something that is not a string.
        """
        if isinstance(sentences, str):
            return self.encode([sentences], show_progress_bar=show_progress_bar, **options)[0]
        texts = [clean(text, row) for row, text in enumerate(sentences)]
        options.pop("precision", None)  # that of its weights
        if options.get("device") is not None:
            self.model.to(options.pop("device"))
        if not texts:
            dimension = int(self.model.get_embedding_dimension() or 0)
            empty = torch.empty(0, dimension)
            as_tensor = options.get("convert_to_tensor") or not options.get(
                "convert_to_numpy", True
            )
            return empty if as_tensor else empty.numpy()
        size = int(options.get("batch_size") or 32)  # of sentence-transformers
        with quiet_transformers(), encoding_bar(len(texts), show=False) as advance:
            # Its own bar is shown; who watches the encoding is told of each batch.
            hook = self.model[0].register_forward_hook(lambda *_: advance(size))
            try:
                vectors = self.model.encode(texts, show_progress_bar=show_progress_bar, **options)
            finally:
                hook.remove()
        if isinstance(vectors, torch.Tensor):
            return vectors.float()
        return vectors.astype("float32", copy=False)

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the SentenceTransformer layout (safetensors)."""
        with quiet_transformers():
            self.model.save(str(path), create_model_card=False)
        Path(path, "README.md").write_text(card or "# Sentence embeddings\n", "utf-8")


def open_model(name: str) -> Encoder | ForeignEncoder:
    """Any sentence encoder, pooled as its own configuration says: ours, or sentence-transformers'
    where ours does not know a part of it. A plain transformer gets mean pooling.

    Raises:
        InputError: no such model, a damaged one, pickled weights, or one that needs code of its
            own.
    """
    try:
        return Encoder.load(name)
    except UnsupportedModel as error:
        return run_by_sentence_transformers(name, str(error))


_BACKENDS = {"onnx": ("onnxruntime", "optimum.onnxruntime"), "openvino": ("optimum.intel",)}
_TRANSFORMERS = "transformers"
_OLDEST_TRANSFORMERS = "5.0.0"  # of those that this package runs with
_EXPORTERS = {"onnx": "optimum-onnx", "openvino": "optimum-intel"}


def check_backend(backend: str) -> None:
    """Check that what a backend of sentence-transformers needs is installed, and suits the installed
    transformers.

    Raises:
        InputError: it is not, or does not.
    """
    for module in _BACKENDS.get(backend, ()):
        try:
            found = importlib.util.find_spec(module) is not None
        except ImportError:  # the package above it
            found = False
        if not found:
            raise InputError(
                f'"{backend}" needs {module.partition(".")[0]}, which is not installed',
                key="backend",
                remedy=f'pip install "sentence-transformers[{backend}]"',
            )
    if backend in _EXPORTERS:
        _check_exporter(backend, _EXPORTERS[backend])


def _check_exporter(backend: str, package: str) -> None:
    """Raises:
    InputError: the package that exports models needs another version of transformers.
    """
    installed = metadata.version(_TRANSFORMERS)
    needed = _needed_transformers(package)
    if needed.contains(installed, prereleases=True):
        return
    name = f"{package} {metadata.version(package)}"
    message = f'"{backend}": {name} needs transformers{needed}, and {installed} is installed'
    if needed.contains(_OLDEST_TRANSFORMERS):
        remedy = f'an environment of its own with "transformers{needed}"'
    else:
        remedy = 'no version suits both that and this package: leave the backend at "torch"'
    raise InputError(message, key="backend", remedy=remedy)


def _needed_transformers(package: str) -> SpecifierSet:
    """Return the versions of transformers that a package names."""
    try:
        stated = metadata.requires(package) or []
    except metadata.PackageNotFoundError:  # installed under another name
        stated = []
    found = SpecifierSet()
    for line in stated:
        requirement = Requirement(line)
        if requirement.name == _TRANSFORMERS and requirement.marker is None:
            found &= requirement.specifier
    return found


def run_by_sentence_transformers(name: str, why: str, *, backend: str = "torch") -> ForeignEncoder:
    """A model as sentence-transformers runs it, from a folder without pickled weights.

    Args:
        backend: "torch", "onnx" or "openvino"; a model without a file for it is exported.

    Raises:
        InputError: it cannot be loaded, a module's weights are pickled, or a backend is not
            installed.
    """
    check_backend(backend)
    from sentence_transformers import SentenceTransformer

    folder = model_folder(name)
    check_is_encoder(name, folder)
    # Some files are in half precision, which a processor computes slowly and less exactly.
    if backend == "torch":
        options = {"use_safetensors": True, "dtype": torch.float32}
    else:
        options = {}
    how: Any = {"model_kwargs": options, "backend": backend}
    try:
        with quiet_transformers():
            model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=False, **how)
    except Exception as error:  # whatever the module of another library raises
        if "pytorch_model.bin" in str(
            error
        ):  # a module has no other weights, and these were not downloaded
            raise InputError(
                f'model "{name}": the weights of one of its modules are a pickle '
                "(pytorch_model.bin), which is not read",
                file=name,
                remedy="give a model with safetensors files",
            ) from None
        raise InputError(
            f"{why}; sentence-transformers cannot load it either: {first_line(error):.200}"
        ) from None
    return ForeignEncoder(model.float().eval(), why)


def own_prompts(name: str) -> dict[str, str]:
    """Key -> text as the makers of a model wrote them, without empty ones; none where they wrote
    none.

    Args:
        name: a hub id, a folder or embedded:NAME.
    """
    from harness.sources import resolve_model
    from harness.sources.remote.hub import hub_file

    resolved = resolve_model(name)
    file = Path(resolved) / CONFIG
    if not Path(resolved).is_dir():
        try:
            file = hub_file(resolved, CONFIG, kind="model")
        except InputError:  # most models have no such file
            return {}
    if file.is_file():
        found = read_json(file).get("prompts")
    else:
        found = None
    if isinstance(found, dict):
        prompts = {}
        for key, text in found.items():
            if text:
                prompts[str(key)] = str(text)
        return prompts
    return {}


def pick_prompts(
    name: str,
    model: Any,
    own: Mapping[str, str],
    asked: Mapping[str, str] | Literal["own"] | None,
) -> tuple[dict[str, str] | None, list[str]]:
    """The prompts for the texts of tasks, and the keys of a model's own prompts that are not used.

    A model that sentence-transformers runs puts its default prompt before every text, unless others
    are requested.

    Raises:
        InputError: the model has none of its own, or leaves prompts out of its pooling.
    """
    foreign = isinstance(model, ForeignEncoder)
    if asked is None:
        default = model.default_prompt if foreign else ""
        unused = [key for key, text in own.items() if text != default]
        return None, unused
    if asked == "own" and not own:
        raise InputError(
            f'prompts "own": {name} has none in its {CONFIG}',
            file=name,
            key="prompts",
            remedy='give them, as {"STS": "query: "}',
        )
    if foreign:  # the texts include their own prompts
        included = [getattr(module, "include_prompt", True) for module in model.model]
        if any(value is False for value in included):
            raise InputError(
                "leaves its prompt out of the pooling; it is evaluated with its default one alone",
                file=name,
            )
        model.model.default_prompt_name = None
    texts = dict(own if asked == "own" else asked)
    encoder = model if isinstance(model, Encoder) else getattr(model, "_encoder", None)
    if isinstance(encoder, Encoder) and not encoder.include_prompt:
        encoder.left_out = tuple(texts.values())
    return texts, []


def in_half_precision(name: str) -> bool:
    """True if the weights of a model are stored in fewer than 32 bits; all are computed in 32."""
    from harness.sources import resolve_model
    from harness.sources.remote.hub import hub_file

    resolved = resolve_model(name)
    if Path(resolved).is_dir():
        file = transformer_folder(name, Path(resolved)) / "config.json"
    else:
        try:
            file = hub_file(resolved, "config.json", kind="model")
        except InputError:  # no transformer
            return False
    if file.is_file():
        stated = read_json(file)
    else:
        stated = {}
    dtype = stated.get("dtype") or stated.get("torch_dtype")
    return dtype in ("float16", "bfloat16")


def leaves_prompts_out(name: str) -> bool:
    """True if the pooling of a model does not count the tokens of a prompt."""
    from harness.sources import resolve_model
    from harness.sources.remote.hub import hub_file

    resolved = resolve_model(name)
    if Path(resolved).is_dir():
        if not (Path(resolved) / MODULES).is_file():
            return False
        places = []
        for kind, path in modules_of(name, Path(resolved)):
            if kind.endswith("Pooling"):
                places.append(Path(resolved) / path / "config.json")
    else:
        try:
            places = [hub_file(resolved, "1_Pooling/config.json", kind="model")]
        except InputError:  # a model without a pooling of its own
            return False
    settings = []
    for file in places:
        if file.is_file():
            settings.append(read_json(file))
    return any(one.get("include_prompt") is False for one in settings)
