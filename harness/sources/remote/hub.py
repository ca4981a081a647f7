"""Files and data sets of the Hugging Face hub, with one clear line for whatever is missing or out of reach."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.errors import InputError, OutOfReach, RunError, root_cause
from harness.files.redaction import redacted
from harness.sources.remote.cache_folder import writing

if TYPE_CHECKING:
    from datasets import Dataset

SILENCE = 60.0  # seconds without a byte after which a connection is given up; huggingface_hub itself waits for ever


@cache
def hub_reachable() -> bool:
    """Whether the hub answers at all (any status) within HF_HUB_ETAG_TIMEOUT (10 s); asked once a process.

    huggingface_hub repeats a refused connection for 23 s before it turns to its cache; one probe saves that wait.
    """
    from huggingface_hub import constants, get_session, is_offline_mode

    if is_offline_mode():
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # whatever the HTTP library of the day raises: no answer is no answer
        return False
    return True


def _out_of_reach(what: str) -> str:
    from huggingface_hub import constants, is_offline_mode

    if is_offline_mode():
        return f"{what}: not in the local cache, and HF_HUB_OFFLINE is set; unset it to download"
    return (
        f"{what}: not in the local cache, and the hub at {redacted(constants.ENDPOINT)} cannot be reached; "
        "check the network, or set HF_ENDPOINT to a mirror that has it"
    )


@contextmanager
def _clear_errors(
    what: str, repo: str, revision: str | None, folder: str | Path, kind: str = "data set"
) -> Iterator[None]:
    from huggingface_hub import errors, get_session

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
        raise OutOfReach(_out_of_reach(what)) from None
    except errors.HfHubHTTPError as error:
        raise InputError(f"{what}: the hub answered with an error: {first_line(error)}") from None
    except Exception as error:
        if not is_broken_connection(error):
            raise
        raise RunError(
            f"{what}: the connection to the hub broke ({type(error).__name__}: {first_line(error)}); "
            "what was downloaded is kept, give the same command again"
        ) from None


def is_broken_connection(error: BaseException) -> bool:
    """Was a connection cut, garbled or silent? As the HTTP library and huggingface_hub's check of sizes say it."""
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__)
    of_http = any(name == "RequestError" and library.startswith("httpx") for library, name in kinds)
    return of_http or (isinstance(error, OSError) and "Consistency check failed" in str(error))


def kept_folder(repo: str, kind: str = "dataset") -> Path:
    """Where huggingface_hub keeps what it downloaded of a data set or model."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"{kind}s--{repo.replace('/', '--')}"


def remedy(repo: str, kind: str = "dataset") -> str:
    """What helps against files that came with other bytes, which huggingface_hub does not notice; else ""."""
    folder = kept_folder(repo, kind)
    try:
        there = any(folder.glob("snapshots/*/*"))
    except (OSError, ValueError):  # a name that can be none
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
        InputError: no such data set, revision or file; hub out of reach and no cached copy; disk full.
        RunError: the connection broke; the next call goes on from what was downloaded.
    """
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    what = f"hf://{'datasets/' if kind == 'dataset' else ''}{repo}{'@' + revision if revision else ''}/{file}"
    with _clear_errors(what, repo, revision, constants.HF_HUB_CACHE, "data set" if kind == "dataset" else "model"):
        try:
            local = not hub_reachable()
            return Path(hf_hub_download(repo, file, repo_type=kind, revision=revision, local_files_only=local))
        except ValueError as error:
            if isinstance(error, HfHubHTTPError):
                raise
            raise InputError(f"{what}: {first_line(error)}") from None


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
    with _clear_errors(what, repo, revision, datasets.config.HF_DATASETS_CACHE):
        try:
            # Without an answer from the hub `datasets` serves its own cache only when told that it is offline.
            datasets.config.HF_HUB_OFFLINE = not hub_reachable()
            yield
        except DatasetNotFoundError:
            raise InputError(
                f"{what}: the hub has no data set {repo}; check its name (private ones need HF_TOKEN)"
            ) from None
        except DatasetsError as error:
            cause = root_cause(error)
            if is_broken_connection(cause) or (isinstance(cause, OSError) and cause.errno):
                raise cause from None  # told apart above
            raise InputError(f"{what}: cannot be read: {first_line(cause)}") from None
        except ValueError as error:
            if not hub_reachable():
                raise OutOfReach(_out_of_reach(what)) from None
            raise InputError(f"{what}: {first_line(error)}") from None
        except ConnectionError:
            raise OutOfReach(_out_of_reach(what)) from None
        finally:
            datasets.config.HF_HUB_OFFLINE = offline
            datasets.logging.set_verbosity(verbosity)
            hub_logging.set_verbosity(of_hub)
            if bars:
                datasets.enable_progress_bars()


def hub_split(repo: str, split: str, revision: str | None = None) -> Dataset:
    """One split of the data set `repo`, in whatever layout the hub keeps it.

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


def out_of_reach(what: str) -> OutOfReach:
    """The error for what is not in the local cache and cannot be fetched now."""
    return OutOfReach(_out_of_reach(what))
