"""Files and data sets of the Hugging Face hub, with one clear line for whatever is missing or out of reach."""

from __future__ import annotations

import hashlib
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from harness.errors import InputError, OutOfReach, RunError, root_cause
from harness.files.redaction import redacted
from harness.sources.remote.cache_folder import writing

if TYPE_CHECKING:
    from datasets import Dataset

SILENCE = 60.0  # seconds without a byte after which a connection is given up; huggingface_hub itself waits for ever


@cache
def hub_reachable() -> bool:
    """Whether the hub answers at all (any status) within HF_HUB_ETAG_TIMEOUT (10 s); one request a process.

    huggingface_hub repeats a refused connection for 23 s before it turns to its cache; one probe saves that wait.
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
        return OutOfReach(f"{what}: not in the local cache, and HF_HUB_OFFLINE is set; unset it to download")
    return OutOfReach(
        f"{what}: not in the local cache, and the hub at {redacted(constants.ENDPOINT)} cannot be reached; "
        "check the network, or set HF_ENDPOINT to a mirror that has it"
    )


@contextmanager
def _clear_errors(
    what: str, repo: str, revision: str | None, folder: str | Path, kind: str = "data set"
) -> Iterator[None]:
    from huggingface_hub import errors, get_session

    if revision and (revision.startswith("/") or ".." in PurePosixPath(revision).parts or "\\" in revision):
        raise InputError(f"{what}: revision {revision!r} is no branch, tag or commit")  # as a path it leaves the cache
    get_session().timeout = SILENCE
    at = f" at revision {revision}" if revision else ""
    try:
        with writing(what, Path(folder)), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Not enough free disk space")  # our own error says so
            yield
    except errors.GatedRepoError:
        raise InputError(
            f"{what}: the owner of {repo} grants access on request; ask on its page, then set HF_TOKEN"
        ) from None
    except errors.RepositoryNotFoundError:
        raise InputError(f"{what}: the hub has no {kind} {repo}; check its name (private ones need HF_TOKEN)") from None
    except errors.RevisionNotFoundError:
        raise InputError(f"{what}: {kind} {repo} has no revision {revision}") from None
    except errors.RemoteEntryNotFoundError:
        raise InputError(f"{what}: {kind} {repo} has no such file{at}; see its list of files on the hub") from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise out_of_reach(what) from None
    except errors.HfHubHTTPError as error:
        raise InputError(f"{what}: the hub answered with an error: {first_line(error)}") from None
    except Exception as error:
        if not is_broken_connection(error):
            raise
        raise RunError(
            f"{what}: the connection to the hub broke ({type(error).__name__}: {first_line(error)}); "
            "the downloaded part is kept, give the same command again"
        ) from None


def is_broken_connection(error: BaseException) -> bool:
    """Was a connection cut, garbled or silent? As the HTTP library and huggingface_hub's check of sizes report it."""
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__)
    of_http = any(name == "RequestError" and library.startswith("httpx") for library, name in kinds)
    return of_http or (isinstance(error, OSError) and "Consistency check failed" in str(error))


def kept_folder(repo: str, kind: str = "dataset") -> Path:
    """The folder in which huggingface_hub stores the files of a data set or model."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"{kind}s--{repo.replace('/', '--')}"


def sha256_of(file: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def garbled_files(repo: str, kind: str = "dataset") -> list[Path]:
    """The large files of a data set or model in the cache whose bytes are not those that the hub has.

    The cache names a large (LFS) file by the sha256 that the hub states. huggingface_hub compares only sizes.
    """
    try:
        blobs = [file for file in kept_folder(repo, kind).glob("blobs/*") if re.fullmatch("[0-9a-f]{64}", file.name)]
    except (OSError, ValueError):  # a name that no file can have
        return []
    return [file for file in blobs if sha256_of(file) != file.name]


def remedy(repo: str, kind: str = "dataset") -> str:
    """What to do about a cached file that cannot be read: which file or folder to delete, "" where none is cached."""
    if garbled := garbled_files(repo, kind):
        return f"; {garbled[0]} was damaged on its way: delete it to download it again"
    folder = kept_folder(repo, kind)
    try:
        there = any(folder.glob("snapshots/*/*"))
    except (OSError, ValueError):  # a name that no file can have
        there = False
    return f"; if it was damaged on its way, delete {folder} to download it again" if there else ""


def first_line(error: BaseException) -> str:
    """The first non-empty line of an error's message, or its type."""
    return redacted(next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__))


@cache
def hub_file(
    repo: str, file: str, revision: str | None = None, *, kind: Literal["dataset", "model"] = "dataset"
) -> Path:
    """The local path of `file` of the data set (or model) `repo` ("ORG/NAME"), downloaded unless it is cached.

    Raises:
        InputError: no such data set, revision or file; hub out of reach and no cached copy; disk full; the file is
            not the one that the hub has (by its sha256).
        RunError: the connection broke; the next call resumes the download.
    """
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    what = f"hf://{'datasets/' if kind == 'dataset' else ''}{repo}{'@' + revision if revision else ''}/{file}"
    with _clear_errors(what, repo, revision, constants.HF_HUB_CACHE, "data set" if kind == "dataset" else "model"):
        try:
            local = not hub_reachable()
            path = Path(hf_hub_download(repo, file, repo_type=kind, revision=revision, local_files_only=local))
        except ValueError as error:
            if isinstance(error, HfHubHTTPError):
                raise
            raise InputError(f"{what}: {first_line(error)}") from None
    blob = path.resolve()
    if re.fullmatch("[0-9a-f]{64}", blob.name) and sha256_of(blob) != blob.name:
        raise InputError(
            f"{what}: damaged on its way (other bytes than on the hub); delete {blob} to download it again"
        )
    return path


@contextmanager
def dataset_errors(what: str, repo: str, revision: str | None) -> Iterator[None]:
    """While `datasets` reads `what`, its errors as those of `hub_file`, and nothing of its own on the terminal."""
    import datasets
    from datasets.exceptions import DatasetNotFoundError, DatasetsError
    from huggingface_hub.utils import logging as hub_logging

    of_hub = hub_logging.get_verbosity()
    hub_logging.set_verbosity(logging.ERROR)  # else a line for each set without a card
    offline, verbosity = datasets.config.HF_HUB_OFFLINE, datasets.logging.get_verbosity()
    bars = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()  # else two lines for each set that comes from the cache
    try:
        with _clear_errors(what, repo, revision, datasets.config.HF_DATASETS_CACHE):
            # Without an answer from the hub `datasets` uses its own cache only when it is set to offline.
            datasets.config.HF_HUB_OFFLINE = not hub_reachable()
            yield
    except DatasetNotFoundError:
        raise InputError(
            f"{what}: the hub has no data set {repo}; check its name (private ones need HF_TOKEN)"
        ) from None
    except ConnectionError:
        raise out_of_reach(what) from None
    except (DatasetsError, ValueError) as error:
        cause = root_cause(error)
        if is_broken_connection(cause) or (isinstance(cause, OSError) and cause.errno):
            with _clear_errors(what, repo, revision, datasets.config.HF_DATASETS_CACHE):
                raise cause from None
        if isinstance(error, ValueError) and not hub_reachable():
            raise out_of_reach(what) from None
        raise InputError(f"{what}: cannot be read: {first_line(cause)}") from None
    finally:
        datasets.config.HF_HUB_OFFLINE = offline
        datasets.logging.set_verbosity(verbosity)
        hub_logging.set_verbosity(of_hub)
        if bars:
            datasets.enable_progress_bars()


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
    """The commit (40 hex digits) that `revision` (a branch, a tag; None: the newest) of a data set stands for now.

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
