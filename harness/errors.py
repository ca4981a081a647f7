"""The errors that a user meets: each is one clear line, and each maps to an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class HarnessError(Exception):
    """Base of every error whose message is meant for the user. `exit_code` is what the command line
    returns.
    """

    exit_code = 1


class InputError(HarnessError):
    """The user's input is wrong: the message names the file or key, what was expected and what to
    do (exit code 2).
    """

    exit_code = 2


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
    """Have every `InputError` inside begin with the file, or the experiment, whose keys it is
    about.

    What the hub does not give is no fault of a file.
    """
    try:
        yield
    except OutOfReach:
        raise
    except InputError as error:
        raise error if where in str(error) else type(error)(f"{where}: {error}") from None


class StopRequested(BaseException):
    """The run was requested to stop: its checkpoint is written, nothing has failed.

    No `Exception`, so that nobody on its way takes it for the failure of a task, a method or a
    cell.
    """


def root_cause(error: BaseException) -> BaseException:
    """What lies at the bottom ("Connection refused") says more than what the layers above make of
    it.
    """
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error
