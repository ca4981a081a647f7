"""Files and data sets of the Hugging Face hub, with one clear line for whatever is missing or out
of reach.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from harness.errors import InputError, OutOfReach, RunError, root_cause
from harness.files.hashing import sha256_of
from harness.files.printable import first_line, join_some, redacted
from harness.sources.remote.cache_folder import writing

if TYPE_CHECKING:
    from datasets import Dataset

SILENCE = 60.0  # seconds without a byte after which a connection is given up; huggingface_hub itself waits for ever


@cache
def hub_reachable() -> bool:
    """Whether the hub answers at all (any status) within HF_HUB_ETAG_TIMEOUT (10 s); one request a
    process.

    huggingface_hub repeats a refused connection for 23 s before it turns to its cache; one probe
    saves that wait.
    """
    from huggingface_hub import constants, get_session, is_offline_mode

    if is_offline_mode():
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # the HTTP library may change; any failure means no answer
        return False
    return True


def out_of_reach(what: str) -> OutOfReach:
    """The error for what is not in the local cache and cannot be downloaded now."""
    from huggingface_hub import constants, is_offline_mode

    if is_offline_mode():
        return OutOfReach(
            "not in the local cache, and HF_HUB_OFFLINE is set",
            file=what,
            remedy="unset it to download",
        )
    return OutOfReach(
        f"not in the local cache, and the hub at {redacted(constants.ENDPOINT)} cannot be reached",
        file=what,
        remedy="check the network, or set HF_ENDPOINT to a mirror that has it",
    )


@contextmanager
def _clear_errors(
    what: str,
    repo: str,
    revision: str | None,
    folder: str | Path,
    kind: str = "data set",
) -> Iterator[None]:
    from huggingface_hub import errors, get_session

    if revision and (
        revision.startswith("/") or ".." in PurePosixPath(revision).parts or "\\" in revision
    ):
        raise InputError(
            f"revision {revision!r} is no branch, tag or commit", file=what
        )  # as a path it leaves the cache
    get_session().timeout = SILENCE
    at = f" at revision {revision}" if revision else ""
    try:
        with writing(what, Path(folder), "HF_HOME"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Not enough free disk space")  # our own error says so
            yield
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise out_of_reach(what) from None
    except errors.HfHubHTTPError as error:
        reasons = {  # the first class that fits
            errors.GatedRepoError: f"the owner of {repo} grants access on request; ask on its page, then set HF_TOKEN",
            errors.RepositoryNotFoundError: f"the hub has no {kind} {repo}; check its name (private: set HF_TOKEN)",
            errors.RevisionNotFoundError: f"{kind} {repo} has no revision {revision}",
            errors.RemoteEntryNotFoundError: f"{kind} {repo} has no such file{at}; see its list of files on the hub",
            errors.HfHubHTTPError: f"the hub answered with an error: {first_line(error)}",
        }
        fitting = [text for one, text in reasons.items() if isinstance(error, one)]
        reason = fitting[0]
        raise InputError(reason, file=what) from None
    except Exception as error:
        if not is_broken_connection(error):
            raise
        raise RunError(
            f"{what}: the connection to the hub broke ({type(error).__name__}: {first_line(error)}); "
            "the downloaded part is saved: give the same command again"
        ) from None


def is_broken_connection(error: BaseException) -> bool:
    """Was a connection cut, garbled or silent? As the HTTP library and huggingface_hub's check of
    sizes report it.
    """
    of_http = False
    for kind in type(error).__mro__:
        library = kind.__module__.partition(".")[0]
        if kind.__name__ == "RequestError" and library.startswith("httpx"):
            of_http = True
    is_cut = isinstance(error, OSError) and "Consistency check failed" in str(error)
    return of_http or is_cut


def find_cached_folder(repo: str, kind: str = "dataset") -> Path:
    """The folder in which huggingface_hub stores the files of a data set or model."""
    from huggingface_hub import constants

    folder = repo.replace("/", "--")
    return Path(constants.HF_HUB_CACHE) / f"{kind}s--{folder}"


def remedy(repo: str, kind: str = "dataset") -> str:
    """What to do about a cached file that cannot be read: which folder to delete, "" where none is
    cached.
    """
    folder = find_cached_folder(repo, kind)
    try:
        there = any(folder.glob("snapshots/*/*"))
    except (OSError, ValueError):  # a name that no file can have
        return ""
    if there:
        return f"; if it was damaged on its way, delete {folder} to download it again"
    return ""


def check_downloads(files: Iterable[Path], since: float = 0.0) -> None:
    """Check files of the hub's cache that were downloaded since a time: the cache names each by the
    hash that the hub has stated.

    Raises:
        RunError: files were garbled on their way; they are removed, so that the next call downloads
            them again.
    """
    garbled: list[str] = []
    for file in files:
        blob = file.resolve()
        if blob.is_file() and blob.stat().st_mtime >= since and _is_garbled(blob):
            blob.unlink()
            garbled.append(file.name)
    if garbled:
        raise RunError(
            f"{join_some(sorted(garbled))}: garbled on the way from the hub; "
            "give the same command again to download it"
        )


def _is_garbled(blob: Path) -> bool:
    """True if a file of the hub's cache is not what its name says: the sha256 of a large file, git's
    hash of a small one (that of its bytes alone where a mirror states it). Other names say nothing.
    """
    name = blob.name
    if re.fullmatch("[0-9a-f]{64}", name):
        return sha256_of(blob) != name
    if re.fullmatch("[0-9a-f]{40}", name):
        content = blob.read_bytes()
        stated = (b"blob %d\0" % len(content) + content, content)
        return name not in [hashlib.sha1(one).hexdigest() for one in stated]  # noqa: S324 - theirs
    return False


def check_cached(repo: str, kind: str = "dataset") -> None:
    """Check all cached files of a data set or model, where one of them could not be read.

    Raises:
        RunError: as `check_downloads`.
    """
    try:
        files = list(find_cached_folder(repo, kind).glob("snapshots/*/**/*"))
    except (OSError, ValueError):  # a name that no file can have
        return
    check_downloads(files)


@cache
def hub_file(
    repo: str,
    file: str,
    revision: str | None = None,
    *,
    kind: Literal["dataset", "model"] = "dataset",
) -> Path:
    """The local path of `file` of the data set (or model) `repo` ("ORG/NAME"), downloaded unless it
    is cached.

    Raises:
        InputError: no such data set, revision or file; hub out of reach and no cached copy; disk
            full.
        RunError: the connection broke; the next call resumes the download.
    """
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    of_kind = "datasets/" if kind == "dataset" else ""
    at = f"@{revision}" if revision else ""
    what = f"hf://{of_kind}{repo}{at}/{file}"
    with _clear_errors(
        what,
        repo,
        revision,
        constants.HF_HUB_CACHE,
        "data set" if kind == "dataset" else "model",
    ):
        try:
            local = not hub_reachable()
            started = time.time()
            found = Path(
                hf_hub_download(
                    repo, file, repo_type=kind, revision=revision, local_files_only=local
                )
            )
            check_downloads([found], started)
            return found
        except ValueError as error:
            if isinstance(error, HfHubHTTPError):
                raise
            raise InputError(first_line(error), file=what) from None


@contextmanager
def bars_in_a_terminal() -> Iterator[None]:
    """Downloads show their progress in a terminal, and add no lines to a log."""
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


@contextmanager
def quiet_datasets(*, offline: bool) -> Iterator[None]:
    """`datasets` without bars and lines of its log, whose errors it raises too; it uses its own
    cache without a hub only when it is set to offline.
    """
    import datasets
    from huggingface_hub.utils import logging as hub_logging

    before = (
        datasets.config.HF_HUB_OFFLINE,
        datasets.logging.get_verbosity(),
        hub_logging.get_verbosity(),
    )
    bars = not datasets.are_progress_bars_disabled()
    datasets.config.HF_HUB_OFFLINE = offline
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(logging.CRITICAL)
    hub_logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before[0]
        datasets.logging.set_verbosity(before[1])
        hub_logging.set_verbosity(before[2])
        if bars:
            datasets.enable_progress_bars()


@contextmanager
def dataset_errors(what: str, repo: str, revision: str | None) -> Iterator[None]:
    """While `datasets` reads `what`, its errors as those of `hub_file`, and nothing of its own on
    the terminal.
    """
    import datasets
    from datasets.exceptions import DatasetNotFoundError, DatasetsError

    cache_folder = datasets.config.HF_DATASETS_CACHE
    try:
        with (
            quiet_datasets(offline=not hub_reachable()),
            _clear_errors(what, repo, revision, cache_folder),
        ):
            yield
    except DatasetNotFoundError:
        raise InputError(
            f"the hub has no data set {repo}",
            file=what,
            remedy="check its name (private ones need HF_TOKEN)",
        ) from None
    except ConnectionError:
        raise out_of_reach(what) from None
    except (DatasetsError, ValueError) as error:
        cause = root_cause(error)
        if is_broken_connection(cause) or (isinstance(cause, OSError) and cause.errno):
            with _clear_errors(what, repo, revision, cache_folder):
                raise cause from None
        if isinstance(error, ValueError) and not hub_reachable():
            raise out_of_reach(what) from None
        check_cached(repo)
        raise InputError(f"cannot be read: {first_line(cause)}", file=what) from None


def hub_split(repo: str, split: str, revision: str | None = None) -> Dataset:
    """One split of the data set `repo`, in whatever layout the hub has it.

    Raises:
        InputError, RunError: as `hub_file`; or no such split.
    """
    import datasets

    with dataset_errors(f"hf://datasets/{repo} (split {split})", repo, revision):
        data: Dataset = datasets.load_dataset(repo, split=split, revision=revision)
        return data


def hub_commit(repo: str, revision: str | None = None) -> str | None:
    """The commit (40 hex digits) that `revision` (a branch, a tag; None: the newest) of a data set
    is now.

    None while the hub cannot be reached.

    Raises:
        InputError: no such data set or revision.
    """
    from huggingface_hub import HfApi, constants

    if revision and re.fullmatch("[0-9a-f]{40}", revision):
        return revision
    if not hub_reachable():
        return None
    with _clear_errors(f"hf://datasets/{repo}", repo, revision, constants.HF_HUB_CACHE):
        return HfApi().dataset_info(repo, revision=revision).sha
