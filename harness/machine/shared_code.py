"""Notice a method that changes code which later runs of its process use: functions of torch,
NumPy or transformers that it replaced, hooks for all modules, threads that it left.
"""

from __future__ import annotations

import hashlib
import random
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

from harness.files.code import is_library, is_own, is_shipped

# how the names of modules begin whose functions must stay
_WATCHED = (
    "torch.nn.",
    "torch.optim.",
    "numpy.linalg",
    "scipy.stats.",
    "transformers.models.",
    "transformers.activations",
    "transformers.modeling_utils",
    "harness.",
    "methods.",
    "random",
)
_WATCHED_ALONE = ("torch", "torch.nn.functional", "numpy")  # without the modules inside of them
_OF_NUMPY = "_ArrayFunctionDispatcher"  # the type of its functions
_OURS = ("harness.", "methods.")
_PARTS = (FunctionType, BuiltinFunctionType, type, property, classmethod, staticmethod)


@dataclass
class _Process:
    """What is known of this process.

    Attributes:
        functions: (module or class, name) -> function, as it was first seen.
        modules: the watched modules whose functions are known.
        numbers: part of the reference -> its hash, as first computed; empty before.
        threads: that were there then.
        change: what a run changed, as a sentence; empty where nothing is known.
        at_import: what was changed when it was first seen: functions of libraries that are of the
            user, hooks and modes. A module of a plugin does so as soon as it is imported.
    """

    functions: dict[tuple[Any, str], Any] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    numbers: Mapping[str, str] = field(default_factory=dict)
    threads: set[int] = field(default_factory=set)
    change: str = ""
    at_import: list[str] = field(default_factory=list)


_PROCESS = _Process()


def remember() -> bool:
    """Remember functions and reference numbers, before code of a plugin runs; what was remembered
    before stays.

    Returns:
        True if this is the first time.
    """
    begins = not _PROCESS.numbers
    _remember_functions()
    if begins:
        _PROCESS.threads = {id(thread) for thread in threading.enumerate()}
        _PROCESS.numbers = compute_reference()
        for part, counts in _count_hooks().items():
            if any(counts):
                _PROCESS.at_import.append(part)
        _remember_functions()  # of what the reference has imported
    return begins


def _remember_functions() -> None:
    for owner, name, function in _new_functions():
        _PROCESS.functions[owner, name] = function
        if _is_replaced(owner, function):
            _PROCESS.at_import.append(_full_name(owner, name))


def find_change(by: str) -> str:
    """Return what has changed since `remember`, as a sentence that begins with `by`; empty where
    nothing has, or where it was not called. The first change holds for the rest of the process.
    """
    if not _PROCESS.numbers or _PROCESS.change:
        return _PROCESS.change
    changes = list(_changes())
    if changes:
        if len(changes) > 1:
            more = f" and {len(changes) - 1} more"
        else:
            more = ""
        _PROCESS.change = f"{by} changed {changes[0]}{more}"
    return _PROCESS.change


def get_change() -> str:
    """Return what `find_change` has found before; empty where it found nothing."""
    return _PROCESS.change


def change_at_import() -> str:
    """Return what a module of the user changes when it is imported, as a sentence; empty where none
    does. Rows of that module mean it, other rows do not.
    """
    found = _PROCESS.at_import
    if not found:
        return ""
    if len(found) > 1:
        more = f" and {len(found) - 1} more"
    else:
        more = ""
    return f"code that this process imported changed {found[0]}{more}"


def is_changed() -> bool:
    """True if something was changed: this process is of no use for further runs."""
    return bool(_PROCESS.change or _PROCESS.at_import)


def _changes() -> Iterator[str]:
    """Yield the threads, the functions and the parts of the reference."""
    for thread in threading.enumerate():
        if id(thread) not in _PROCESS.threads and _runs_own_code(thread):
            yield f'what runs beside later runs: its thread "{thread.name}" has not ended'
    for (owner, name), function in _PROCESS.functions.items():
        now = vars(owner).get(name)
        if now is not function and not _is_of_library(now):
            yield _full_name(owner, name)
    for owner, name, function in _new_functions():
        _PROCESS.functions[owner, name] = function
        if _is_replaced(owner, function):
            yield _full_name(owner, name)
    numbers = compute_reference()
    new = numbers.keys() - _PROCESS.numbers.keys()
    for part in [*_PROCESS.numbers, *new]:
        if _PROCESS.numbers.get(part) != numbers.get(part):
            yield part


def _new_functions() -> Iterator[tuple[Any, str, Any]]:
    """Yield owner, name and function of the watched modules and their classes that are not known
    yet.
    """
    imported = list(sys.modules)  # a thread may import something meanwhile
    watched = [name for name in imported if name.startswith(_WATCHED)]
    alone = [name for name in _WATCHED_ALONE if name in sys.modules]
    for module_name in [*watched, *alone]:
        module = sys.modules[module_name]
        if module_name in _PROCESS.modules or module is None:
            continue
        _PROCESS.modules.add(module_name)
        for name, value in list(vars(module).items()):
            if isinstance(value, _PARTS) or type(value).__name__ == _OF_NUMPY:
                yield module, name, value
            if isinstance(value, type) and value.__module__ == module_name:
                for part, function in list(vars(value).items()):
                    if isinstance(function, _PARTS):
                        yield value, part, function


def _full_name(owner: Any, name: str) -> str:
    if isinstance(owner, type):
        where = f"{owner.__module__}.{owner.__qualname__}"
    else:
        where = owner.__name__
    return f"{where}.{name}"


def _file_of(function: Any) -> str:
    of_method = getattr(function, "__func__", function)
    plain = getattr(function, "fget", None) or of_method
    code = getattr(plain, "__code__", None)
    if isinstance(code, CodeType):
        return code.co_filename
    return ""


def _is_of_library(function: Any) -> bool:
    """True of code that a package put in the place of its own, as torch.compile does."""
    return is_library(_file_of(function))


def _is_replaced(owner: Any, function: Any) -> bool:
    """True of a function that is the user's code in a module or class that is not."""
    module = sys.modules.get(getattr(owner, "__module__", owner.__name__))
    file = _file_of(function)
    home = getattr(module, "__file__", None) or ""
    has_no_file = not file or file.startswith("<")
    if owner.__name__.startswith(_OURS) or has_no_file:
        return False
    return is_own(file) and not is_own(home)


def _runs_own_code(thread: threading.Thread) -> bool:
    """True of a thread that runs code of a user: neither of Python nor of a package.

    Threads of this package, such as the one that sends records to a tracker, are none, whatever
    they call.
    """
    functions = [getattr(thread, name, None) for name in ("_target", "function")]
    started = [_file_of(function) for function in functions]
    if any(file and is_shipped(file) for file in started):
        return False
    files = [file for file in started if file and not file.startswith("<frozen")]
    frame: Any = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<"):  # what a library generates, as dataclasses do, has no file
            files.append(name)
        frame = frame.f_back
    return any(is_own(file) for file in files)


def compute_reference() -> Mapping[str, str]:
    """Return hashes of what a small model and NumPy compute, by part: forward passes, a training
    step, norms, random numbers. The generators of the process stay as they are.
    """
    import torch

    parts: dict[str, str] = {}
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        for compute in (_draw, _train_layers, _run_bert, _use_numpy, _count_hooks):
            torch.default_generator.manual_seed(11)
            try:
                digests = {name: _digest(value) for name, value in compute().items()}
                parts |= digests
            except Exception as error:  # of whatever was replaced
                needs = f"what {compute.__name__[1:]} needs"
                parts[needs] = type(error).__name__
    return parts


def _draw() -> dict[str, Any]:
    import numpy as np
    import torch

    return {
        "random numbers of torch": torch.rand(8),
        "random numbers": [np.random.default_rng(11).random(8), random.Random(11).random()],  # noqa: S311
    }


def _use_numpy() -> dict[str, Any]:
    """Return what scores are made of."""
    import numpy as np

    table = np.arange(30.0).reshape(6, 5) ** 1.5 % 7
    return {
        "numpy.linalg": [
            np.linalg.norm(table),
            np.linalg.norm(table, axis=1, keepdims=True),
            np.linalg.svd(table)[1],
            np.linalg.eigvalsh(table.T @ table),
        ],
        "functions of numpy": [
            table.mean(0),
            np.mean(table),
            np.std(table),
            np.argsort(table, axis=0),
            np.corrcoef(table),
            np.exp(table) / np.sqrt(table + 1),
        ],
    }


def _train_layers() -> dict[str, Any]:
    """Return what the usual layers give, and their weights after a training step."""
    import torch

    layers = torch.nn.ModuleList(
        [
            torch.nn.Embedding(12, 8),
            torch.nn.LayerNorm(8),
            torch.nn.Linear(8, 6),
            torch.nn.GELU(),
            torch.nn.Tanh(),
            torch.nn.Dropout(0.5),
        ]
    )
    weights = list(layers.parameters())
    optimiser = torch.optim.AdamW(weights, lr=0.1, foreach=False)
    hidden = torch.arange(12).view(3, 4)
    for layer in layers:
        hidden = layer(hidden)
    pooled = torch.nn.functional.normalize(hidden.mean(dim=1), dim=1)
    cosines = pooled @ pooled.T
    loss = torch.nn.CrossEntropyLoss()(cosines / 0.05, torch.arange(3))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    optimiser.step()
    return {
        "the layers of torch.nn": [hidden, hidden.mean(dim=1), loss],
        "a training step of torch": weights,
    }


def _run_bert() -> dict[str, Any]:
    """Return the vectors of a BERT of random weights, with and without dropout, and which activations
    transformers has. The model is new each time: an old one would hold the activations of before.
    """
    import torch
    from transformers.activations import ACT2FN
    from transformers.models.bert.configuration_bert import BertConfig
    from transformers.models.bert.modeling_bert import BertModel

    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertModel(BertConfig(vocab_size=12, num_hidden_layers=1, **sizes))
    torch.default_generator.manual_seed(12)
    tokens = torch.arange(8).view(2, 4)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    trained = model.train()(tokens, attention_mask=mask).last_hidden_state
    encoded = model.eval()(tokens, attention_mask=mask)
    return {
        "BERT of transformers": [trained, encoded.last_hidden_state, encoded.pooler_output],
        "the activations of transformers": [id(activation) for activation in ACT2FN.values()],
    }


def _count_hooks() -> dict[str, Any]:
    import torch

    hooks = []
    for name, value in sorted(vars(torch.nn.modules.module).items()):
        if name.startswith("_global_") and isinstance(value, dict):
            hooks.append(len(value))
    modes = [torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()]
    return {"the hooks of all modules": hooks, "the modes of torch": modes}


def _digest(value: Any) -> str:
    """Return a hash of the bytes of arrays, tensors and numbers."""
    import numpy as np

    content = hashlib.sha256()
    for one in value if isinstance(value, list) else [value]:
        if hasattr(one, "detach"):
            array = one.detach().numpy()
        else:
            array = np.asarray(one)
        kind = str(array.dtype)
        content.update(kind.encode() + array.tobytes())
    return content.hexdigest()
