"""Small texts between a job and its coordinator while the job runs, where they share no disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Post(Protocol):
    """What an executor may offer (`Executor.post`); it travels with a job, pickled.

    Nothing is queued: what is told last counts, and is told whole, so that a post that was lost and is there anew knows
    all of it after a second.

    >>> post = Box()
    >>> post.exchange("job", {"at": "update 3"}, ["stop"])
    {}
    >>> post.turn({"stop": "enough"})
    {'job': {'at': 'update 3'}}
    >>> post.exchange("job", {"at": "update 4"}, ["stop"])
    {'stop': 'enough'}
    """

    def exchange(self, job: str, told: Mapping[str, str], wanted: Sequence[str]) -> Mapping[str, str]:
        """Called by a job, any of them at any time: what it has to tell, by name.

        Returns:
            Those of the `wanted` that the coordinator has left.

        Raises:
            ConnectionError: it could not be brought now.
        """

    def turn(self, left: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
        """Called by the coordinator: what there is for jobs, by name, in place of all that was left before.

        Returns:
            What jobs have told since the last turn, by job.

        Raises:
            ConnectionError: it could not be brought now.
        """


class Box:
    """A post in the memory of one process, which is there for all others.

    >>> Box().turn({})
    {}
    """

    def __init__(self) -> None:
        self._told: dict[str, Mapping[str, str]] = {}
        self._left: Mapping[str, str] = {}

    def exchange(self, job: str, told: Mapping[str, str], wanted: Sequence[str]) -> Mapping[str, str]:
        """As `Post.exchange`."""
        self._told[job] = told
        return {name: self._left[name] for name in wanted if name in self._left}

    def turn(self, left: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
        """As `Post.turn`."""
        self._left = left
        told, self._told = self._told, {}
        return told
