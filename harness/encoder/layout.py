"""Folders of models in the layout of sentence-transformers: where they are, what is refused, how
they are written.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.encoder.adapters import require_peft
from harness.errors import InputError
from harness.files.atomic import open_folder, share_files
from harness.files.printable import first_line
from harness.files.reading import read_json, require_ordinary
from harness.results.model_card import FOLDER_IN_CARD, TAGS

MODULES = "modules.json"
CONFIG = "config_sentence_transformers.json"
# Saved folders name this class, and those of _OURS in model.py: their import paths must not change.
SAVED_METHOD = "harness.modules.SavedMethod"

# Files of a hub repository that are pickled, or made for other libraries.
_NOT_DOWNLOADED = [
    "*.bin",
    "*.pt",
    "*.pth",
    "*.pkl",
    "*.ckpt",
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.gguf",
    "*.mlmodel",
]
_NOT_DOWNLOADED += ["onnx/*", "openvino/*"]


def model_folder(name: str) -> Path:
    """The folder of a model: a local one, an embedded one, or a download from the hub that leaves
    pickles out.

    Raises:
        InputError: no such model, or one with pickled weights.
    """
    from harness.sources import resolve_model
    from harness.sources.remote.hub import (
        bars_in_a_terminal,
        check_downloads,
        hub_reachable,
        out_of_reach,
    )

    folder = Path(resolve_model(name))
    local = folder.is_dir()
    if not local:
        from huggingface_hub import snapshot_download

        started = time.time()
        try:
            with bars_in_a_terminal():
                found = snapshot_download(
                    name, ignore_patterns=_NOT_DOWNLOADED, local_files_only=not hub_reachable()
                )
        except Exception as error:  # the hub client raises classes of its own
            raise (
                no_model(name, error)
                if hub_reachable()
                else out_of_reach(f'model "{name}" (no folder)')
            ) from error
        folder = Path(found)
        files = [file for file in folder.rglob("*") if file.is_file()]
        check_downloads(files, started)
    check_files(name, folder)
    refuse_pickles(name, folder, downloaded=not local)
    return folder


_MOST_LAYERS = 10_000  # a configuration with more would be built for ever
_LONGEST_PROMPT = 100_000  # characters


def check_files(name: str, folder: Path) -> None:
    """Refuse the folder of a model that could not be read to an end.

    Raises:
        InputError: a file that is a pipe or a device, endless settings, an adapter where peft is
            not installed, or a prompt that is as long as a book.
    """
    for file in folder.rglob("*"):
        if not file.is_dir():
            require_ordinary(file)
    places = [folder]
    if (folder / MODULES).is_file():
        places += [folder / path for _, path in modules_of(name, folder)]
    for place in places:
        require_peft(name, place)
        check_settings(name, place)
    if (folder / CONFIG).is_file():
        prompts = read_json(folder / CONFIG).get("prompts")
        for key, text in prompts.items() if isinstance(prompts, dict) else ():
            if len(str(text)) > _LONGEST_PROMPT:
                message = f"a prompt of {len(str(text)):,} characters; expected one of a few words"
                key = f'key "prompts.{key:.40}"'
                raise InputError(message, file=folder / CONFIG, key=key)


def check_settings(name: str, folder: Path) -> None:
    """Refuse a config.json that declares a number of layers that no model has.

    Raises:
        InputError: it does, or it is no JSON object.
    """
    file = folder / "config.json"
    if not file.is_file():
        return
    for key, value in read_json(file).items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and "layer" in key and not 0 <= value <= _MOST_LAYERS:
            message = f'model "{name}": expected a number of layers, not {value:,}'
            raise InputError(message, file=file, key=f'key "{key:.40}"')


def refuse_pickles(name: str, folder: Path, *, downloaded: bool = False) -> None:
    """Refuse a folder from which a library could read pickled weights.

    A pickle is refused even if safetensors files lie next to it: sentence-transformers reads it
    where a file is missing in a module's folder. In the download cache of the hub, other programs
    may have put pickles; there, one that has a safetensors file of the same part is accepted.

    Raises:
        InputError: `folder` or a folder in it holds pickled weights, or a configuration or weight
            index names them.
    """
    weights = [*folder.rglob("pytorch_model*.bin"), *folder.rglob("adapter_model*.bin")]
    for file in sorted(weights):
        stem = file.stem.replace("pytorch_model", "model")
        safe = file.with_name(f"{stem}.safetensors")
        if not (downloaded and safe.exists()):
            raise _pickle_error(name, str(file.relative_to(folder)), folder)
    settings = [*folder.rglob("*.index.json"), *folder.rglob("config.json")]
    for file in sorted(settings):
        try:
            content = json.loads(file.read_text("utf-8"))
            if file.name.endswith(".index.json"):
                shards = content.get("weight_map", {}).values()
            else:
                shards = ()
            named = []
            for part in (*shards, content.get("transformers_weights") or "model.safetensors"):
                named.append(str(part))
        except (
            ValueError,
            AttributeError,
            OSError,
            RecursionError,
        ):  # the reader of the file reports what is wrong with it
            continue
        unsafe = [
            part for part in named if not part.endswith((".safetensors", ".safetensors.index.json"))
        ]
        if unsafe:
            raise _pickle_error(
                name,
                f"{file.relative_to(folder)} names {unsafe[0]}, which",
                folder,
            )


def _pickle_error(name: str, what: str, folder: Path) -> InputError:
    convert = f"AutoModel.from_pretrained({str(folder)!r}, use_safetensors=False).save_pretrained('FOLDER')"
    return InputError(
        f'model "{name}": {what} is a pickle, and pickled weights are not read; delete it if safetensors files hold '
        "the same weights; else, if you trust its source, convert it once: "
        f'python -c "from transformers import AutoModel; {convert}", copy the other files, and name FOLDER',
        file=name,
    )


def no_model(name: str, error: Exception) -> InputError:
    """The one line that says why `name` cannot be loaded.

    Raises:
        RunError: files of it were garbled on their way from the hub.
    """
    from harness.sources.remote.hub import check_cached, remedy

    check_cached(name, "model")
    reason = first_line(error)
    if "no file named model.safetensors" in reason or "cannot be loaded with `safetensors`" in str(
        error
    ):
        reason = (
            "it has no model.safetensors; pickled weights (pytorch_model.bin) are not read, convert them with "
            "transformers' save_pretrained"
        )
    if "sentencepiece" in reason.lower() or "tiktoken" in reason.lower():
        # transformers takes a file of sentencepiece for one of tiktoken.
        reason = "its tokenizer is a file of sentencepiece; pip install sentencepiece protobuf"
    why = f"(not a folder, not on the hub, or damaged): {reason:.300}{remedy(name, 'model')}"
    return InputError(f'model "{name}" cannot be loaded {why}', file=name)


def modules_of(name: str, folder: Path) -> list[tuple[str, str]]:
    """Class and path of each module that modules.json names, in order.

    Raises:
        InputError: there is no such file, or a damaged one.
    """
    try:
        rows = json.loads((folder / MODULES).read_text("utf-8"))
        chain = []
        for row in rows:
            chain.append((str(row["type"]), str(row.get("path", ""))))
        return chain
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
    ) as error:
        fault = f"{first_line(error):.200}"
        raise InputError(f"{MODULES} is damaged: {fault}", file=name) from error


# What a sentence encoder may be made of without losing something where another pooling is trained.
_REPLACEABLE = frozenset(
    {"Transformer", "Pooling", "WeightedLayerPooling", "WordWeights", "SecondCopy", "LastMask"}
)


def kinds_of(name: str, folder: Path) -> list[str]:
    """Return the kinds of modules of a sentence encoder; none of a transformer alone.

    Raises:
        InputError: modules.json is damaged.
    """
    if not (folder / MODULES).is_file():
        return []
    chain = modules_of(name, folder)
    return [kind.rpartition(".")[2] for kind, _ in chain]


def check_start(name: str, folder: Path) -> None:
    """Refuse to train from a sentence encoder of which a part would be lost.

    Raises:
        InputError: it has a module that is neither trained nor saved.
    """
    known = _REPLACEABLE | {"Normalize"}
    lost = [kind for kind in kinds_of(name, folder) if kind not in known]
    if lost and lost != [SAVED_METHOD.rpartition(".")[2]]:
        raise InputError(
            f'base model "{name}": its module {lost[0]} would be lost, for training starts from the transformer alone',
            file=folder / MODULES,
            remedy="take a model without it, or the transformer in a folder without modules.json",
        )


def check_is_encoder(name: str, folder: Path) -> None:
    """Refuse a model that scores pairs of texts, which has no vector of a sentence.

    Raises:
        InputError: a cross-encoder.
    """
    if (folder / CONFIG).is_file():
        stated = read_json(folder / CONFIG)
    else:
        stated = {}
    file = folder / "config.json"
    if file.is_file():
        config = read_json(file)
    else:
        config = {}
    heads = [str(kind) for kind in config.get("architectures") or []]
    scores = any(kind.endswith("ForSequenceClassification") for kind in heads)
    by_library = any(key in config for key in _CROSS_ENCODER_KEYS)
    labels = config.get("id2label") or {}
    one_label = config.get("num_labels") == 1 or len(labels) == 1
    plain = not (folder / MODULES).is_file()
    if stated.get("model_type") == "CrossEncoder" or (
        plain and scores and (one_label or by_library)
    ):
        raise InputError(
            f'model "{name}" is a cross-encoder ({heads[0] if heads else "CrossEncoder"}): it scores pairs of texts '
            "and has no vectors of sentences",
            file=folder,
            remedy="name an encoder; a pooling (--pooling mean) takes its transformer all the same",
        )


_CROSS_ENCODER_KEYS = ("sentence_transformers", "sbert_ce_default_activation_function")


def describe_assumed_pooling(folder: Path) -> str:
    """Return how a transformer without a pooling of its own is pooled, and what is not used of it."""
    file = folder / "config.json"
    config = read_json(file) if file.is_file() else {}
    heads = config.get("architectures") or []
    said = "the mean of its tokens is taken; a pooling (--pooling) sets another"
    if heads and "For" in str(heads[0]):
        said += f"; the head of {heads[0]} is not used"
    return said


def module_types(folder: Path) -> list[str]:
    """The classes that modules.json names, in order; none where there is no such file, or a damaged
    one.
    """
    try:
        return [kind for kind, _ in modules_of("", folder)]
    except InputError:
        return []


def is_whole_method(folder: Path) -> bool:
    """Can only its method read the folder of a saved method? Its modules.json then names our class,
    or is missing.
    """
    if not (folder / MODULES).is_file():
        return True
    return module_types(folder) == [SAVED_METHOD]


def names_our_modules(folder: Path) -> bool:
    """Does modules.json name a class of this package, so that sentence-transformers demands
    `trust_remote_code`?
    """
    return any(kind.startswith("harness.modules.") for kind in module_types(folder))


def make_sentence_transformer(folder: Path) -> bool:
    """Name our module in the folder of a saved method; False where modules.json is there already."""
    if (folder / MODULES).exists():
        return False
    write_json(
        folder / CONFIG,
        {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )
    write_json(
        folder / MODULES,
        [
            {
                "idx": 0,
                "name": "0",
                "path": "",
                "type": SAVED_METHOD,
            }
        ],
    )
    return True


@contextmanager
def stage_folder(path: Path) -> Iterator[Path]:
    """An empty folder to write into; it replaces `path` when the block ends without an error, and
    else is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = open_folder(path)
    try:
        yield staged
        share_files(staged)
        if path.exists():
            old = open_folder(path)
            path.rename(old / path.name)
            staged.rename(path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            staged.rename(path)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def write_json(file: Path, value: Any) -> None:
    """Write `value`, indented."""
    file.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


def update_json(file: Path, **values: Any) -> None:
    """Set keys of a file that holds a JSON object."""
    write_json(file, {**json.loads(file.read_text("utf-8")), **values})


_FRONT = "\n".join(
    ("library_name: sentence-transformers", "pipeline_tag: sentence-similarity", "tags:")
)
_USE = """from sentence_transformers import SentenceTransformer{install}

model = SentenceTransformer("{folder}"{flag})  # the path of this folder, or ORG/NAME on the hub
vectors = model.encode(["A sentence.", "Another one."])"""
_WHY = """
No module of sentence-transformers can express this method, so `modules.json` names a class of `harness.modules`, in the
package `sentence-harness`, which has to be installed. sentence-transformers requires the flag for every class that is
not its own; this folder holds no code.
"""


def card_text(text: str, *, ours: bool = False, after: str = "") -> str:
    """A README of `text` (Markdown) with front matter for the hub and with the code that opens the
    folder.

    Args:
        ours: the folder needs a class of `harness.modules`.
        after: what follows at the end.
    """
    tags = "\n".join(f"- {tag}" for tag in TAGS)
    if ours:
        flag = ", trust_remote_code=True"
        install = "  # needs the package sentence-harness"
    else:
        flag = ""
        install = ""
    code = _USE.format(flag=flag, install=install, folder=FOLDER_IN_CARD)
    use = f"## Use\n\n```python\n{code}\n```\n{_WHY if ours else ''}"
    front = f"---\n{_FRONT}\n{tags}\n---"
    return f"{front}\n\n{text.strip()}\n\n{use}{after}"
