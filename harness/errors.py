"""The errors that a user meets: each is one clear line, and each maps to an exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class HarnessError(Exception):
    """Base of every error whose message is meant for the user. `exit_code` is what the command line
    returns.
    """

    exit_code = 1


class InputError(HarnessError):
    """The user's input is wrong (exit code 2). Its text is one line,
    `FILE, line LINE: KEY: MESSAGE; REMEDY`.

    A part that the message names itself is not written before it: `InputError('no row "b"', key="b")`
    reads `no row "b"`.

    Args:
        message: what is wrong, and what was expected.
        file: the file, folder, model, corpus or experiment that it is about; of "FILE, line 3" the
            attributes are `file` and `line`.
        line: the number of the line in the file, from 1.
        key: the key, option, argument or column; `column "text"` is written as given, and the
            attribute is `text`.
        remedy: what to do, as "name another folder".

    Attributes:
        message, file, line, key, remedy: as given; None where the message has no such part.
        within: the file or experiment that names `file`, where there is one.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        key: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)  # only this, so that a worker can send the error to its parent
        self.message = message
        self.file: str | None = None
        self.line = line
        if file is not None:
            self.file = str(file)
            place = _PLACE.fullmatch(self.file)
            if place and line is None:
                self.file = place[1]
                self.line = int(place[2])
        self.key = key
        quoted = _QUOTED.fullmatch(key or "")
        if quoted:
            self.key = quoted[1]
        self.remedy = remedy
        self.within: str | None = None
        self._written_key = key

    def rename_key(self, key: str) -> None:
        """Name the key as the caller does, who gave the value under another name."""
        self.key = key
        self._written_key = key

    def __str__(self) -> str:
        text = self.message
        if self._written_key and not _names_key(text, self._written_key):
            text = f"{self._written_key}: {text}"
        if self.file and not _names_file(self.message, self.file):
            place = self.file
            if self.line is not None:
                place += f", line {self.line}"
            text = f"{place}: {text}"
        if self.within:
            text = f"{self.within}: {text}"
        if self.remedy:
            text += f"; {self.remedy}"
        return " ".join(text.splitlines())  # names of columns and files may have line breaks


_PLACE = re.compile(r"(.+), line (\d+)")
_QUOTED = re.compile(r'(?:key|column) "(.+)"')


def _names_file(message: str, file: str) -> bool:
    """True if a message names a file itself: first, or in quotes."""
    return message.startswith(file) or f'"{file}"' in message


def _names_key(message: str, key: str) -> bool:
    """True if a message names a key itself: first, after a colon, in quotes or with its value."""
    name = re.escape(key)
    named = rf'(?:^|: ){name}(?![\w-])|"{name}"|(?<![\w-]){name} ?["=]'
    return re.search(named, message) is not None


class UnsupportedModel(InputError):  # noqa: N818 - says what it is
    """A sound model of a kind that `harness.encoder.Encoder` does not know; sentence-transformers
    itself may.
    """


class OutOfReach(InputError):  # noqa: N818 - says what it is
    """Text of the hub that is not in the local cache and cannot be fetched now."""


class NoRoom(InputError):  # noqa: N818 - says what it is
    """A disk or a limit is used up, or a disk fails: no fault of the input (exit code 1)."""

    exit_code = 1


class RunError(HarnessError):
    """Something failed while running; the message says what was saved (exit code 1)."""


class NotFitted(HarnessError):  # noqa: N818 - the name that scikit-learn's users know
    """`encode` or `save` was called before `fit`."""


class TrainingStopped(HarnessError):  # noqa: N818 - an outcome to record, not a fault
    """Training ended by the collapse guard. `status` is "collapsed" or "diverged", the message is
    the reason.
    """

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Begin every `InputError` raised inside with the file, or the experiment, that it is about.

    What the hub does not give is no fault of a file.
    """
    try:
        yield
    except OutOfReach:
        raise
    except InputError as error:
        if where in str(error):
            raise
        if error.file is None:
            error.file = where
        elif error.within is None:
            error.within = where
        else:
            error.within = f"{where}: {error.within}"
        raise


class StopRequested(BaseException):
    """The run was requested to stop: its checkpoint is written, nothing has failed.

    No `Exception`, so that nobody on its way takes it for the failure of a task, a method or a
    cell.
    """


def root_cause(error: BaseException) -> BaseException:
    """Return the exception at the bottom ("Connection refused"), which says more than the layers
    above it.
    """
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error
