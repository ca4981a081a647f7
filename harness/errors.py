"""The errors that a user meets: each is one clear line, and each maps to an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


class HarnessError(Exception):
    """Base of every error whose message is meant for the user. `exit_code` is what the command line
    returns.
    """

    exit_code = 1


class InputError(HarnessError):
    """The user's input is wrong (exit code 2). Its text is one line, `FILE: KEY: MESSAGE; REMEDY`.

    Args:
        message: what is wrong, and what was expected.
        file: the file, folder or experiment that it is about.
        key: the key, option, argument or column.
        remedy: what to do, as "name another folder".

    Attributes:
        message, file, key, remedy: as given; None where the message has no such part.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        key: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)  # only this, so that a worker can send the error to its parent
        self.message = message
        if file is None:
            self.file = None
        else:
            self.file = str(file)
        self.key = key
        self.remedy = remedy

    def __str__(self) -> str:
        parts = [self.file, self.key, self.message]
        text = ": ".join(part for part in parts if part)
        if self.remedy:
            return f"{text}; {self.remedy}"
        return text


class UnsupportedModel(InputError):  # noqa: N818 - says what it is
    """A sound model of a kind that `harness.encoder.Encoder` does not know; sentence-transformers
    itself may.
    """


class OutOfReach(InputError):  # noqa: N818 - says what it is
    """Text of the hub that is not in the local cache and cannot be fetched now."""


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


def refuse(faults: Mapping[str, object]) -> None:
    """Raise the first of these messages whose fault holds.

    Raises:
        InputError: one of them holds.
    """
    for message, holds in faults.items():
        if holds:
            raise InputError(message)


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
        if where not in str(error):
            if error.file is None:
                error.file = where
            else:
                error.file = f"{where}: {error.file}"
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
