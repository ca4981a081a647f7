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

from harness.errors import InputError
from harness.files.atomic import open_folder, share_files
from harness.files.printable import first_line
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
    from harness.sources.remote.hub import check_downloads, hub_reachable, out_of_reach

    folder = Path(resolve_model(name))
    local = folder.is_dir()
    if not local:
        from huggingface_hub import snapshot_download

        started = time.time()
        try:
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
        check_downloads((file for file in folder.rglob("*") if file.is_file()), started)
    refuse_pickles(name, folder, downloaded=not local)
    return folder


def refuse_pickles(name: str, folder: Path, *, downloaded: bool = False) -> None:
    """Refuse a folder from which a library could read pickled weights.

    A pickle is refused even if safetensors files lie next to it: sentence-transformers reads it
    where a file is missing in a module's folder. In the download cache of the hub, other programs
    may have put pickles; there, one that has a safetensors file of the same part is accepted.

    Raises:
        InputError: `folder` or a folder in it holds pickled weights, or a configuration or weight
            index names them.
    """
    for file in sorted([*folder.rglob("pytorch_model*.bin"), *folder.rglob("adapter_model*.bin")]):
        safe = file.with_name(f"{file.stem.replace('pytorch_model', 'model')}.safetensors")
        if not (downloaded and safe.exists()):
            raise _pickled(name, str(file.relative_to(folder)), folder)
    for file in sorted([*folder.rglob("*.index.json"), *folder.rglob("config.json")]):
        try:
            content = json.loads(file.read_text("utf-8"))
            shards = (
                content.get("weight_map", {}).values() if file.name.endswith(".index.json") else ()
            )
            named = [
                str(part)
                for part in (*shards, content.get("transformers_weights") or "model.safetensors")
            ]
        except (
            ValueError,
            AttributeError,
            OSError,
        ):  # the reader of the file reports what is wrong with it
            continue
        unsafe = [
            part for part in named if not part.endswith((".safetensors", ".safetensors.index.json"))
        ]
        if unsafe:
            raise _pickled(name, f"{file.relative_to(folder)} names {unsafe[0]}, which", folder)


def _pickled(name: str, what: str, folder: Path) -> InputError:
    convert = f"AutoModel.from_pretrained({str(folder)!r}, use_safetensors=False).save_pretrained('FOLDER')"
    return InputError(
        f'model "{name}": {what} is a pickle, and pickled weights are not read; delete it if safetensors files hold '
        "the same weights; else, if you trust its source, convert it once: "
        f'python -c "from transformers import AutoModel; {convert}", copy the other files, and name FOLDER'
    )


def no_model(name: str, error: Exception) -> InputError:
    """The one line that says why `name` cannot be loaded."""
    from harness.sources.remote.hub import remedy

    reason = first_line(error)
    if "no file named model.safetensors" in reason or "cannot be loaded with `safetensors`" in str(
        error
    ):
        reason = (
            "it has no model.safetensors; pickled weights (pytorch_model.bin) are not read, convert them with "
            "transformers' save_pretrained"
        )
    why = f"(not a folder, not on the hub, or damaged): {reason:.300}{remedy(name, 'model')}"
    return InputError(f'model "{name}" cannot be loaded {why}')


def modules_of(name: str, folder: Path) -> list[tuple[str, str]]:
    """Class and path of each module that modules.json names, in order.

    Raises:
        InputError: there is no such file, or a damaged one.
    """
    try:
        rows = json.loads((folder / MODULES).read_text("utf-8"))
        return [(str(row["type"]), str(row.get("path", ""))) for row in rows]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{name}: {MODULES} is damaged: {error}") from error


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
    return not (folder / MODULES).is_file() or module_types(folder) == [SAVED_METHOD]


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
    write_json(folder / MODULES, [{"idx": 0, "name": "0", "path": "", "type": SAVED_METHOD}])
    return True


@contextmanager
def staged_folder(path: Path) -> Iterator[Path]:
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
    flag, install = (
        (", trust_remote_code=True", "  # and: pip install sentence-harness") if ours else ("", "")
    )
    code = _USE.format(flag=flag, install=install, folder=FOLDER_IN_CARD)
    use = f"## Use\n\n```python\n{code}\n```\n{_WHY if ours else ''}"
    return f"---\n{_FRONT}\n{tags}\n---\n\n{text.strip()}\n\n{use}{after}"
