"""Is the data of an mteb task there? Asked before anything is encoded, and once a process for each data set."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from harness.errors import InputError
from harness.files.redaction import redacted
from harness.sources.remote.hub import first_line, hub_reachable, kept_folder


def check_data(repositories: dict[str, str]) -> None:
    """`repositories`: data set on the hub -> pinned revision.

    Raises:
        InputError: one of them is neither on the hub nor in the local cache.
    """
    for repository, revision in repositories.items():
        reason = _absence(repository, revision)
        if reason:
            raise InputError(reason)


@cache
def _absence(repository: str, revision: str) -> str:
    """Why a data set cannot be had; "" where it can."""
    from huggingface_hub import HfApi, constants, errors

    if not hub_reachable():
        if _stored(repository):
            return ""
        hub = redacted(constants.ENDPOINT)
        return f"no data: not in the local cache, and no hub can be reached at {hub}"  # one reason for all its tasks
    try:
        info = HfApi().dataset_info(repository, revision=revision, timeout=constants.HF_HUB_ETAG_TIMEOUT)
        if info.gated:  # its page is open to all, its files are not
            HfApi().auth_check(repository, repo_type="dataset")
    except errors.GatedRepoError:
        return f"no data: {repository} is gated; ask for access on its page, then set HF_TOKEN"
    except errors.RepositoryNotFoundError:
        return f"no data: the hub has no data set {repository} (private ones need HF_TOKEN)"
    except errors.RevisionNotFoundError:
        return f"no data: data set {repository} has no revision {revision}"
    except Exception as error:  # whatever the HTTP library of the day raises
        return "" if _stored(repository) else f"no data: the hub answered with an error: {first_line(error):.200}"
    return ""


def _stored(repository: str) -> bool:
    """Is anything of the data set in the caches of huggingface_hub or datasets?"""
    from datasets import config

    converted = Path(config.HF_DATASETS_CACHE) / repository.replace("/", "___")
    return kept_folder(repository).is_dir() or converted.is_dir()
