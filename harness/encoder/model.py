"""The encoder that the rest of the harness uses: a network that is read from and written to
folders.

A saved encoder is a chain of sentence-transformers' own modules, whose classes read and write their
files. Two are ours, in `harness.modules`: `SecondCopy` of an echo, and `LastMask` of a template
with several [MASK]s. sentence-transformers takes seconds to import, and most encoders are a
transformer and a pooling: their files of settings are read and written here, as it does.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import nn

from harness.encoder import layout, loading
from harness.encoder.layout import (
    CONFIG,
    MODULES,
    SAVED_METHOD,
    card_text,
    check_is_encoder,
    describe_assumed_pooling,
    model_folder,
    modules_of,
    stage_folder,
    update_json,
    write_json,
)
from harness.encoder.network import Network
from harness.encoder.pooling import Normalize, Pooling, TokenConvolution
from harness.encoder.quiet import quiet_transformers
from harness.errors import InputError, UnsupportedModel
from harness.files.reading import read_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_CHAIN = re.compile(
    "Transformer( WeightedLayerPooling)?( WordWeights)?( CNN)?( SecondCopy| LastMask)? Pooling( Dense| Normalize)*"
)
_OURS = ("SecondCopy", "LastMask")
_TRANSFORMER_SETTINGS = "sentence_bert_config.json"
_CLASSES = {
    "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "SecondCopy": "harness.modules.SecondCopy",
    "LastMask": "harness.modules.LastMask",
}  # as modules.json names them
_MODES = {
    "cls": "cls",
    "mean": "mean",
    "max": "max",
    "lasttoken": "last",
}  # of sentence-transformers and of ours


class Encoder(Network):
    """A `Network` that is loaded from a base model or a saved encoder, and saved.

        >>> Encoder.from_pretrained("embedded:mini-bert").encode(["A dog runs."]).shape
        (1, 256)

    Attributes:
        why: what a reader should know of how it pools, where its folder does not say.
    """

    why: str = ""

    @classmethod
    def from_pretrained(
        cls,
        name: str,
        *,
        pooling: str = "mean",
        max_length: int | None = None,
        first_layer: int = 1,
    ) -> Self:
        """A base model: "embedded:NAME", a folder, or a hub id, with the pooling called `pooling`.

        The template of a prompt or an echo becomes a part of the tokenizer, a prompt's full stop
        included.

        `max_length` defaults to the `max_seq_length` of a sentence encoder, else to the smallest of
        the tokenizer's limit and 512; it is never above the model's positions.

        Raises:
            InputError: no such model, pickled weights, a pooling that it does not have, or a
                `max_length` beyond its positions.
        """
        rule = Pooling.parse(pooling, first_layer)
        folder = loading.transformer_folder(name, model_folder(name))
        transformer, tokenizer, head = loading.read_parts(name, folder, rule)
        stated = loading.read_max_length(folder)
        longest = loading.longest_row(name, transformer, tokenizer, max_length, stated)
        if template := rule.prompt or rule.echo:
            template.apply(tokenizer)
        encoder = cls(transformer, tokenizer, pooling=rule, max_length=longest, head=head)
        encoder.ends_normalized = "Normalize" in layout.kinds_of(name, folder)
        if (frame := encoder.echo_frame) is not None:
            encoder.max_length = frame.longest(longest)
            if encoder.max_length > longest:
                raise InputError(
                    f'model "{name}": the echo template has {frame.total} tokens, which '
                    f"leaves no room for two copies of a sentence in max_length = {longest}",
                    file=name,
                    remedy="give a shorter template or a larger max_length",
                )
        return encoder

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A folder or hub id in the SentenceTransformer layout: what `save` wrote, or any other of
        a transformer, pooling, and dense or normalisation modules. A plain transformer gets mean
        pooling.

        Raises:
            InputError: no such model, pickled weights, or a damaged file.
            UnsupportedModel: a module or a setting that is not known here.
        """
        name = str(path)
        folder = model_folder(name)
        check_is_encoder(name, folder)
        if not (folder / MODULES).is_file():
            encoder = cls.from_pretrained(name)
            encoder.why = f"its folder names no pooling, so {describe_assumed_pooling(folder)}"
            return encoder
        chain = _chain(name, folder)
        parts, after = _read_modules(name, folder, chain)
        if (folder / CONFIG).is_file():
            config = read_json(folder / CONFIG)
        else:
            config = {}
        if config.get("default_prompt_name"):
            raise UnsupportedModel(
                f'puts the prompt "{config["default_prompt_name"]}" before every sentence',
                file=name,
            )
        settings = parts["Transformer"]
        pooling = _pooling(name, parts, config.get("harness"))
        if set(settings["modality_config"]) != {"text"}:
            raise UnsupportedModel("reads more than plain text", file=name)
        # The transformer was cut when it was saved, and its pooler became a Dense module: neither
        # is done again here.
        of_transformer = folder / chain[0][1]
        transformer, tokenizer, _ = loading.read_parts(name, of_transformer, Pooling("mean"))
        if settings.get("do_lower_case"):
            _lower_case(tokenizer)
        length = int(settings.get("max_seq_length") or tokenizer.model_max_length)
        length = min(length, loading.positions_of(transformer))
        encoder = cls(
            transformer,
            tokenizer,
            pooling=pooling,
            max_length=length,
            token_module=_convolution(name, parts),
        )
        encoder.include_prompt = parts["Pooling"]["include_prompt"]
        saved = [(kind, parts[kind]) for kind in _OURS if kind in parts]
        if saved != _own_module(encoder):
            raise UnsupportedModel(
                f"its pooling, its tokenizer and its {' or '.join(_OURS)} do not fit together",
                file=name,
            )
        if (frame := encoder.echo_frame) is not None:
            encoder.max_length = 2 * length - frame.total  # the tokenizer cuts one copy
        head = _head(name, after)
        if head and isinstance(head[-1], nn.Linear):
            encoder.affine = head.pop()  # type: ignore[assignment]
        encoder.head = nn.Sequential(*head)
        return encoder.eval()

    def set_length(self, tokens: int) -> None:
        """Cut sentences to so many tokens, whatever its configuration says.

        Raises:
            InputError: the transformer has no positions for as many.
        """
        loading.check_length("the model", tokens, loading.positions_of(self.transformer))
        frame = self.echo_frame
        self.max_length = tokens if frame is None else frame.longest(tokens)

    def save(self, path: str | Path, *, card: str = "") -> None:
        """Write the SentenceTransformer layout (safetensors, no code to trust) into the folder
        `path`.

        `SentenceTransformer(path).encode` gives the same vectors. `card` is the text of README.md
        below its heading. The folder appears whole or not at all; an earlier saved model in its
        place is replaced.

        Raises:
            InputError: `path` holds something that is not a saved model, or a part of the encoder
                has no counterpart.
        """
        path = Path(path)
        if path.exists() and not (
            path.is_dir() and ((path / MODULES).exists() or not any(path.iterdir()))
        ):
            raise InputError(
                f"{path} exists and is not a saved model",
                file=path,
                remedy="choose another folder or remove it",
            )
        with stage_folder(path) as staged:
            _write_transformer(self, staged)
            rows = [
                {
                    "idx": 0,
                    "name": "0",
                    "path": "",
                    "type": _CLASSES["Transformer"],
                }
            ]
            with torch.random.fork_rng(
                devices=[]
            ):  # modules are drawn at random before they get their weights
                modules = _modules_of(self)
            for index, module in enumerate(modules, start=1):
                only_settings = isinstance(module, tuple)
                if only_settings:
                    kind = _CLASSES[module[0]]
                else:
                    kind = _class_of(module)
                place = f"{index}_{kind.rpartition('.')[2]}"
                (staged / place).mkdir()
                if only_settings:
                    _write_settings(staged / place / "config.json", *module)
                else:
                    module.save(str(staged / place))
                rows.append(
                    {
                        "idx": index,
                        "name": str(index),
                        "path": place,
                        "type": kind,
                    }
                )
            write_json(staged / MODULES, rows)
            own = {"pooling": self.pooling.name, "first_layer": self.pooling.first_layer}
            defaults: dict[str, Any] = {
                "prompts": {},
                "default_prompt_name": None,
                "similarity_fn_name": "cosine",
            }
            write_json(staged / CONFIG, {"__version__": {}, **defaults, "harness": own})
            (staged / "README.md").write_text(_card(self, card), "utf-8")


def _chain(name: str, folder: Path) -> list[tuple[str, str]]:
    """Kind and path of each module, in order."""
    rows = modules_of(name, folder)
    if [kind for kind, _ in rows] == [SAVED_METHOD]:
        raise InputError(
            "a saved method that is more than one encoder",
            file=name,
            remedy="open it with `harness.load_model`",
        )
    kinds = [kind.rpartition(".")[2] for kind, _ in rows]
    if not _CHAIN.fullmatch(" ".join(kinds)):
        raise UnsupportedModel(
            f"{MODULES} holds {', '.join(kinds) or 'no modules'}: expected a Transformer and a Pooling, with "
            "Dense or Normalize after them",
            file=name,
        )
    paths = [path for _, path in rows]
    return list(zip(kinds, paths, strict=True))


def _read_modules(
    name: str, folder: Path, chain: list[tuple[str, str]]
) -> tuple[dict[str, Any], list[Any]]:
    """The modules up to the pooling by kind, and those after it; of Transformer, Pooling and of
    ours the settings.
    """
    before: dict[str, Any] = {}
    after: list[Any] = []
    for kind, path in chain:
        try:
            if kind == "Transformer":
                before[kind] = _transformer_settings(folder, path)
            elif kind == "Pooling":
                before[kind] = _pooling_settings(folder, path)
            elif kind in _OURS:
                before[kind] = read_json(folder / path / "config.json")
            elif kind in ("WeightedLayerPooling", "WordWeights"):
                before[kind] = None  # the name of the pooling says what they do
            else:
                with torch.random.fork_rng(
                    devices=[]
                ):  # drawn at random before the weights are read
                    of_kind = getattr(_stock_modules(), kind)
                    module = of_kind.load(str(folder), subfolder=path).float()
                if "Pooling" in before:
                    after.append(module)
                else:
                    before[kind] = module
        except Exception as error:  # safetensors, json and torch raise classes of their own
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(
                f"{path or 'its root'} cannot be read as {kind}: {reason:.300}", file=name
            ) from error
    return before, after


def _transformer_settings(folder: Path, path: str) -> dict[str, Any]:
    """Return the settings of a module Transformer.

    A file with none of the library's newer settings is of a model that reads plain text.
    """
    file = folder / path / _TRANSFORMER_SETTINGS
    if file.is_file():
        settings = read_json(file)
        if settings.keys() <= {"max_seq_length", "do_lower_case", "model_args"}:
            return {**settings, "modality_config": {"text": {}}}
    transformer = _stock_modules().Transformer
    return dict(transformer.load_config(str(folder), subfolder=path))


def _pooling_settings(folder: Path, path: str) -> dict[str, Any]:
    """Return the settings of a module Pooling; the library knows what those of old files mean."""
    file = folder / path / "config.json"
    if file.is_file():
        settings = read_json(file)
        named = settings.keys() == {"embedding_dimension", "pooling_mode", "include_prompt"}
        if named and settings["pooling_mode"] in list(_MODES):  # several modes are a list
            return settings
    pooling = _stock_modules().Pooling.load(str(folder), subfolder=path)
    return dict(pooling.get_config_dict())


def _pooling(name: str, parts: dict[str, Any], own: Any) -> Pooling:
    """The rule that our configuration names, or the mode of Pooling.

    Modules between transformer and pooling are read where our configuration says what they do:
    layers are averaged by a WeightedLayerPooling, WordWeights of ones let padding count as zeros
    before a CNN, and a single one at the mask token lets the pooling read that token.
    """
    named = own or parts.get("SecondCopy") or parts.get("LastMask")
    given = parts["Pooling"]["pooling_mode"]
    if isinstance(named, dict):
        first_layer = int(named.get("first_layer", 1))
        return Pooling.parse(str(named.get("pooling")), first_layer)
    if given not in _MODES or not {"Transformer", "CNN", "Pooling"}.issuperset(parts):
        raise UnsupportedModel(
            f"the pooling {given!r} of {', '.join(parts)} is none of ours", file=name
        )
    return Pooling(_MODES[given])


def _convolution(name: str, parts: dict[str, Any]) -> TokenConvolution | None:
    cnn = parts.get("CNN")
    if cnn is None:
        return None
    if any(stride != 1 for stride in cnn.stride_sizes) or any(
        width % 2 == 0 for width in cnn.kernel_sizes
    ):
        raise UnsupportedModel(
            "its CNN has strides or even widths, which is not supported", file=name
        )
    module = TokenConvolution(cnn.in_embedding_dimension, cnn.out_channels, cnn.kernel_sizes)
    module.convs = cnn.convs
    return module


def _head(name: str, modules: list[Any]) -> list[nn.Module]:
    """What Dense and Normalize modules do to a vector."""
    steps: list[nn.Module] = []
    for module in modules:
        names = {module.module_input_name, module.module_output_name}
        if names != {"sentence_embedding"} or getattr(module, "use_residual", False):
            raise UnsupportedModel(f"{MODULES} holds a {module} that is not supported", file=name)
        if not hasattr(module, "linear"):
            steps.append(Normalize())
            continue
        steps.append(module.linear)
        if not isinstance(module.activation_function, nn.Identity):
            steps.append(module.activation_function)
    return steps


def _lower_case(tokenizer: PreTrainedTokenizerBase) -> None:
    from tokenizers import normalizers

    backend = tokenizer.backend_tokenizer
    if backend.normalizer is None:
        parts = [normalizers.Lowercase()]
    else:
        parts = [normalizers.Lowercase(), backend.normalizer]
    backend.normalizer = normalizers.Sequence(parts)


def _write_transformer(encoder: Network, folder: Path) -> None:
    transformer = encoder.transformer
    pooling = encoder.pooling
    frame = encoder.echo_frame
    if encoder.tokenizer.is_fast:
        # It remembers where it last cut; the files must not depend on what was encoded before.
        encoder.tokenizer.backend_tokenizer.no_truncation()
    with quiet_transformers():
        transformer.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
    if pooling.prompt is not None or frame is not None:
        # A model's own class would build its tokenizer without the template.
        update_json(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    if pooling.layers(_depth(encoder)) != (_depth(encoder),):
        update_json(folder / "config.json", output_hidden_states=True)
    # readers cut one copy
    if frame is None:
        longest = encoder.max_length
    else:
        longest = frame.halve(encoder.max_length)
    settings: dict[str, Any] = {"max_seq_length": longest, "do_lower_case": False}
    if "add_pooling_layer" in inspect.signature(type(transformer)).parameters:
        settings["model_args"] = {
            "add_pooling_layer": False
        }  # else a reader would add one with random weights
    write_json(folder / _TRANSFORMER_SETTINGS, settings)


def _modules_of(encoder: Network) -> list[Any]:
    """The modules after the transformer: sentence-transformers' own, and name and settings of the
    pooling and of one of ours.

    Raises:
        InputError: a part of the encoder that none of them can express.
    """
    pooling = encoder.pooling
    depth = _depth(encoder)
    tokens = encoder.token_module
    width = int(encoder.transformer.config.hidden_size)
    chain: list[Any] = []
    if pooling.layers(depth) != (depth,):
        # The average of layers is linear, so that taking it before or after the tokens are reduced
        # is the same.
        layers = torch.tensor(pooling.layers(depth))
        weights = torch.bincount(layers, minlength=depth + 1).float()
        average = _stock_modules().WeightedLayerPooling(width, depth, 0, nn.Parameter(weights))
        chain.append(average)
    if tokens is not None:
        if not isinstance(tokens, TokenConvolution) or pooling.reads == "mask":
            raise InputError(
                f"a token module of type {type(tokens).__name__} cannot be saved with the "
                f"pooling {pooling.name}",
                remedy="use a TokenConvolution, and a pooling that does not read the mask token",
            )
        chain.append(
            _word_weights(encoder, {}, others=1)
        )  # times the mask, so that padding is zeros
        width = tokens.out_features
        cnn = _stock_modules().CNN
        convolution = cnn(tokens.inputs, tokens.filters, list(tokens.widths))
        convolution.load_state_dict(tokens.state_dict())
        chain.append(convolution)
    ours = _own_module(encoder)
    if pooling.reads == "mask" and not ours:  # the mean of one token is that token's state
        mask_token = str(encoder.tokenizer.mask_token)
        chain.append(_word_weights(encoder, {mask_token: 1}, others=0))
    chain += ours
    modes = {ours: theirs for theirs, ours in _MODES.items()}
    mode = modes["last" if pooling.reads == "last" else pooling.mode]
    settings = {
        "embedding_dimension": width,
        "pooling_mode": mode,
        "include_prompt": encoder.include_prompt,
    }
    chain.append(("Pooling", settings))
    steps = [*encoder.head]
    if encoder.affine is not None:
        steps.append(encoder.affine)
    for step in steps:
        _append_step(chain, step)
    return chain


def _append_step(chain: list[Any], step: nn.Module) -> None:
    """Add a step of a head to a chain of sentence-transformers' modules.

    Raises:
        InputError: they cannot express it in this place.
    """
    modules = _stock_modules()
    if isinstance(step, nn.Linear):
        has_bias = step.bias is not None
        dense = modules.Dense(step.in_features, step.out_features, has_bias, nn.Identity())
        dense.linear.load_state_dict(step.state_dict())
        chain.append(dense)
    elif isinstance(step, Normalize):
        chain.append(modules.Normalize())
    elif isinstance(chain[-1], modules.Dense) and _is_activation(step):
        chain[-1].activation_function = step
    else:
        raise InputError(f"a head with {type(step).__name__} in this place cannot be saved")


def _is_activation(step: nn.Module) -> bool:
    return type(step).__module__.startswith("torch.nn.modules.")


def _word_weights(encoder: Network, named: dict[str, float], *, others: float) -> Any:
    """A weight for some tokens of the vocabulary, and one for all others."""
    rows = int(encoder.transformer.config.vocab_size)
    words = []
    for word in encoder.tokenizer.convert_ids_to_tokens(list(range(rows))):
        words.append(word or "")
    return _stock_modules().WordWeights(words, named, others)


def _own_module(encoder: Network) -> list[tuple[str, dict[str, Any]]]:
    """Name and settings of the module of ours that the pooling needs; none where stock modules
    express it.
    """
    prompt = encoder.pooling.prompt
    name = {"pooling": encoder.pooling.name}
    if encoder.echo_frame is not None:
        return [("SecondCopy", {**name, **asdict(encoder.echo_frame)})]
    if prompt is not None and prompt.several_masks:
        return [("LastMask", {**name, "token": encoder.tokenizer.mask_token_id})]
    return []


def _stock_modules() -> Any:
    """Return the modules of sentence-transformers, which takes seconds to import."""
    from sentence_transformers.sentence_transformer import modules

    return modules


def _write_settings(file: Path, name: str, settings: dict[str, Any]) -> None:
    """Write the settings of a module without weights; those of the pooling as its own class does."""
    if name == "Pooling":
        file.write_text(json.dumps(settings, indent=4), "utf-8")
    else:
        write_json(file, settings)


def _class_of(module: Any) -> str:
    if isinstance(module, type):
        kind = module
    else:
        kind = type(module)
    return f"{kind.__module__}.{kind.__name__}"


def _depth(encoder: Network) -> int:
    return int(encoder.transformer.config.num_hidden_layers)


def _card(encoder: Network, card: str) -> str:
    about = f"""
## Model

| | |
|---|---|
| architecture | {encoder.transformer.config.model_type} |
| parameters | {sum(p.numel() for p in encoder.parameters()):,} |
| pooling | {encoder.pooling.name} |
| dimension | {encoder.dimension} |
| longest input | {encoder.max_length} tokens |
"""
    text = card.strip() or "# Sentence embeddings\n\nA sentence encoder saved by the harness."
    return card_text(text, ours=bool(_own_module(encoder)), after=about)
