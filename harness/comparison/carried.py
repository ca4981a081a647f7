"""The small files of the folder `live`, for a worker that does not see the work directory: its executor's post carries
them, if it has one.

Such a worker writes its dev scores and signs of life into a folder of its own, as it would into the work directory, and
looks there for the word to stop. Once a second what it wrote is told to the coordinator, which puts it where it
belongs, and what lies there for the worker comes back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from harness.comparison import watched
from harness.executors.post import Post
from harness.files.atomic import write_atomic
from harness.live import requests, signs

EVERY = 1.0  # seconds between two exchanges


@contextmanager
def carried(post: Post, workdir: Path, key: str, cell: str) -> Iterator[None]:
    """Exchange the files of a cell in a worker's own folder, while the block lasts and once more at its end.

    Args:
        key: by what a request to stop is known (`harness.live.requests`).
    """
    over = Event()

    def exchange() -> None:
        told, wanted = _by_worker(workdir, cell), _for_worker(workdir, key, cell)
        with suppress(OSError):  # of the post, or of a disk that is away for a moment: the next time
            left = post.exchange(cell, _texts(told, workdir), [_name(file, workdir) for file in wanted])
            for file in wanted:
                _put(file, left.get(_name(file, workdir)))

    def keep_on() -> None:
        while not over.wait(EVERY):
            exchange()

    thread = Thread(target=keep_on, name="post", daemon=True)
    exchange()
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        exchange()


def deliver(post: Post | None, workdir: Path, cells: Collection[str]) -> None:
    """Put what the workers of `cells` have told into the work directory, and leave what lies there for any of them.

    A sign stays until the coordinator has its worker's answer, which may be on its way for a while.
    """
    if post is None:
        return
    with suppress(ConnectionError):  # the next time
        for cell, told in post.turn(_texts(_for_workers(workdir), workdir)).items():
            for file in _by_worker(workdir, cell) if cell in cells else ():  # no other file, whatever was told
                if (text := told.get(_name(file, workdir))) is not None:
                    _put(file, text)


def _by_worker(workdir: Path, cell: str) -> list[Path]:
    return [signs.file_of(workdir, cell), watched.scores_file(workdir, cell)]


def _for_worker(workdir: Path, key: str, cell: str) -> list[Path]:
    return [requests.file_of(workdir, key), watched.stop_file(workdir, cell)]


def _for_workers(workdir: Path) -> list[Path]:
    """Of all of them: found by two looks at the disk, however many there are."""
    return [file for any_one in _for_worker(workdir, "*", "*") for file in any_one.parent.glob(any_one.name)]


def _texts(files: Collection[Path], workdir: Path) -> dict[str, str]:
    found = {}
    for file in files:
        with suppress(FileNotFoundError):
            found[_name(file, workdir)] = file.read_text("utf-8")
    return found


def _name(file: Path, workdir: Path) -> str:
    return file.relative_to(workdir).as_posix()


def _put(file: Path, text: str | None) -> None:
    """Have the file say this; None: have it gone."""
    if text is None:
        file.unlink(missing_ok=True)
    elif not (file.exists() and file.read_text("utf-8") == text):  # which costs less than writing it each second
        write_atomic(file, text, durable=False)
