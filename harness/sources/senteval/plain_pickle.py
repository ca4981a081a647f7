"""Data out of a pickle without running anything that it names.

A pickle is a program: whoever unpickles a file runs it. This reader knows the opcodes that build lists, dicts, tuples,
texts and numbers (protocols 0 to 4; Python's pickletools describes them), makes NumPy arrays of numbers itself, and
refuses every other name before anything is done with it.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from harness.errors import InputError
from harness.files.reading import require_ordinary

_KEYS = (str, bytes, int, float)
_NUMBERS = re.compile(r"[<>=|]?[biuf][1248]")


def read_plain_pickle(path: Path) -> Any:
    """The one object in the file; texts of Python 2 (`str`) are bytes.

    Raises:
        InputError: not readable, damaged, or a pickle of anything but plain data and arrays of numbers.
    """
    require_ordinary(path)
    with path.open("rb") as stream:
        machine = _Machine(stream, path.stat().st_size)
        try:
            return machine.run()
        except _Refused as refused:
            raise InputError(f"{path}: {refused}; it holds more than plain data and is not read") from None
        except (IndexError, KeyError, TypeError, ValueError, OverflowError, EOFError, struct.error) as error:
            raise InputError(
                f"{path}, byte {stream.tell()}: damaged or truncated pickle ({type(error).__name__}: {error})"
            ) from None


class _Refused(Exception):  # noqa: N818 - an outcome of reading
    """The pickle names something that would have to be run."""


class _Dtype:
    """The type of an array while the pickle still describes it."""

    def __init__(self, name: Any) -> None:
        self.name = _text(name)
        self.order = ""

    def done(self) -> np.dtype[Any]:
        text = self.order + self.name.lstrip("<>=|")
        if not _NUMBERS.fullmatch(text):
            raise _Refused(f"an array of {text[:40]!r}")
        return np.dtype(text)


def _text(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


def _array(*_: Any) -> np.ndarray[Any, Any]:
    return np.empty(0, dtype=np.uint8)  # BUILD gives it type, shape and content


def _scalar(dtype: _Dtype, raw: bytes) -> Any:
    return np.frombuffer(raw, dtype.done(), count=1)[0].item()


def _encoded(text: str, encoding: Any) -> bytes:
    if _text(encoding) not in ("latin1", "latin-1"):
        raise _Refused(f"a text in the encoding {_text(encoding)[:40]!r}")
    return text.encode("latin-1")


def _nothing(*_: Any) -> None:
    raise TypeError("a type is called")


# What a pickle of arrays names, and what stands for it here.
_NAMES: dict[str, Callable[..., Any]] = {
    "numpy.ndarray": _nothing,  # an argument of _reconstruct
    "numpy.dtype": lambda name, *_: _Dtype(name),
    "_codecs.encode": _encoded,  # how Python 3 writes bytes in protocols 0 to 2
    "collections.OrderedDict": lambda pairs=(): dict(pairs),
}
for _module in ("numpy.core.multiarray", "numpy._core.multiarray"):
    _NAMES |= {f"{_module}._reconstruct": _array, f"{_module}.scalar": _scalar}


class _Machine:
    """The stack, the memo and the opcodes."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._size = stream, size
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        while True:
            code = self._bytes(1)
            if code == b".":
                return self._stack.pop()
            self._do(code)

    def _bytes(self, count: int) -> bytes:
        if not 0 <= count <= self._size - self._stream.tell():
            raise EOFError(f"{count} bytes are announced that are not there")
        return self._stream.read(count)

    def _number(self, form: str) -> Any:
        return struct.unpack("<" + form, self._bytes(struct.calcsize("<" + form)))[0]

    def _line(self) -> bytes:
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise EOFError("a line has no end")
        return line[:-1]

    def _marked(self) -> list[Any]:
        mark = self._marks.pop()
        values = self._stack[mark:]
        del self._stack[mark:]
        return values

    def _do(self, code: bytes) -> None:
        stack, push = self._stack, self._stack.append
        if code in _VALUES:
            push(_VALUES[code](self))
        elif code == b"\x80":
            self._bytes(1)  # the protocol; an opcode that is too new is told by itself
        elif code == b"\x95":
            self._bytes(8)  # the size of a frame
        elif code == b"(":
            self._marks.append(len(stack))
        elif code == b"0":
            stack.pop()
        elif code == b"1":
            self._marked()
        elif code == b"2":
            push(stack[-1])
        elif code in (b"a", b"e"):
            values = [stack.pop()] if code == b"a" else self._marked()
            _require(stack[-1], list).extend(values)
        elif code in (b"s", b"u", b"d"):
            values = [stack.pop(-2), stack.pop()] if code == b"s" else self._marked()
            if code == b"d":
                push({})
            _set(_require(stack[-1], dict), values)
        elif code in _PUTS:
            self._memo[_PUTS[code](self)] = stack[-1]
        elif code == b"R":
            arguments, name = _require(stack.pop(), tuple), stack.pop()
            push(_require(name, _Name).stands_for(*arguments))
        elif code == b"b":
            state = stack.pop()
            _build(stack[-1], state)
        else:
            raise _Refused(f"byte {self._stream.tell()}: opcode {code!r}")

    def _string(self) -> bytes:
        line = self._line().strip()
        if len(line) < 2 or line[:1] not in (b"'", b'"') or line[:1] != line[-1:]:
            raise ValueError("a text without quotes")
        return codecs.escape_decode(line[1:-1])[0]

    def _integer(self) -> int | bool:
        line = self._line()
        return line == b"01" if line in (b"00", b"01") else int(line)

    def _name(self, module: str, name: str) -> _Name:
        whole = f"{module}.{name}"
        if whole not in _NAMES:
            raise _Refused(f"byte {self._stream.tell()}: names {whole[:80]!r}")
        return _Name(_NAMES[whole])


class _Name:
    """A name that the pickle would import; what stands for it."""

    def __init__(self, stands_for: Callable[..., Any]) -> None:
        self.stands_for = stands_for


def _require(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} expected, not {type(value).__name__}")
    return value


def _set(target: dict[Any, Any], values: list[Any]) -> None:
    for key, value in zip(values[::2], values[1::2], strict=True):
        if not isinstance(key, _KEYS):  # hashing a deep tuple would exhaust the stack
            raise TypeError(f"a key is a {type(key).__name__}")
        target[key] = value


def _build(target: Any, state: Any) -> None:
    if isinstance(target, _Dtype):
        target.order = _text(_require(state, tuple)[1])
        return
    if not isinstance(target, np.ndarray):
        raise _Refused(f"the state of a {type(target).__name__}")
    version, shape, dtype, fortran, raw = _require(state, tuple)
    kind = _require(dtype, _Dtype).done()
    count = 1
    for length in _require(shape, tuple):
        count *= _require(length, int)
        if not 0 <= length <= len(_require(raw, bytes)):
            raise ValueError("the shape of an array")
    if count * kind.itemsize != len(_require(raw, bytes)):
        raise ValueError("an array's content is not as long as its shape says")
    state = (int(version), shape, kind, bool(fortran), raw)
    target.__setstate__(state)


# Opcodes that put a value on the stack.
_VALUES: dict[bytes, Callable[[_Machine], Any]] = {
    b"N": lambda m: None,
    b"\x88": lambda m: True,
    b"\x89": lambda m: False,
    b"I": _Machine._integer,
    b"J": lambda m: m._number("i"),
    b"K": lambda m: m._number("B"),
    b"M": lambda m: m._number("H"),
    b"L": lambda m: int(m._line().rstrip(b"L")),
    b"\x8a": lambda m: int.from_bytes(m._bytes(m._number("B")), "little", signed=True),
    b"F": lambda m: float(m._line()),
    b"G": lambda m: struct.unpack(">d", m._bytes(8))[0],
    b"S": _Machine._string,
    b"T": lambda m: m._bytes(m._number("i")),
    b"U": lambda m: m._bytes(m._number("B")),
    b"B": lambda m: m._bytes(m._number("I")),
    b"C": lambda m: m._bytes(m._number("B")),
    b"\x8e": lambda m: m._bytes(m._number("Q")),
    b"V": lambda m: m._line().decode("raw-unicode-escape"),
    b"X": lambda m: m._bytes(m._number("I")).decode("utf-8", "surrogatepass"),
    b"\x8c": lambda m: m._bytes(m._number("B")).decode("utf-8", "surrogatepass"),
    b"\x8d": lambda m: m._bytes(m._number("Q")).decode("utf-8", "surrogatepass"),
    b"]": lambda m: [],
    b"}": lambda m: {},
    b")": lambda m: (),
    b"l": lambda m: m._marked(),
    b"t": lambda m: tuple(m._marked()),
    b"\x85": lambda m: (m._stack.pop(),),
    b"\x86": lambda m: (m._stack.pop(-2), m._stack.pop()),
    b"\x87": lambda m: (m._stack.pop(-3), m._stack.pop(-2), m._stack.pop()),
    b"c": lambda m: m._name(m._line().decode(), m._line().decode()),
    b"\x93": lambda m: m._name(_require(m._stack.pop(-2), str), _require(m._stack.pop(), str)),
    b"g": lambda m: m._memo[int(m._line())],
    b"h": lambda m: m._memo[m._number("B")],
    b"j": lambda m: m._memo[m._number("I")],
}
# Opcodes that remember the top of the stack: where.
_PUTS: dict[bytes, Callable[[_Machine], int]] = {
    b"p": lambda m: int(m._line()),
    b"q": lambda m: m._number("B"),
    b"r": lambda m: m._number("I"),
    b"\x94": lambda m: len(m._memo),
}
