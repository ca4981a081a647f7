"""Files of the web: fetched once, resumed where a connection broke, and the same bytes as at the first time."""

from __future__ import annotations

import hashlib
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

from harness.errors import InputError, OutOfReach, RunError
from harness.files.atomic import write_atomic
from harness.files.reading import read_json
from harness.files.redaction import redacted
from harness.sources.remote.cache_folder import writing
from harness.sources.remote.hub import SILENCE, first_line

_CHUNK = 1 << 20
_MISSING = (404, 410)
Progress = Callable[[int, int], None]  # bytes that are there, bytes in all (0: not told)


def download(address: str, file: Path, progress: Progress | None = None) -> Path:
    """`file` with what lies at `address` (http or https), unless it is there.

    What was fetched of it stays in `file`.part: the next call goes on there if the server still has the same.

    Raises:
        InputError: no such address, out of reach, disk full.
        RunError: the connection broke; what came is kept.
    """
    if file.is_file():
        return file
    if urlsplit(address).scheme not in ("http", "https"):
        raise InputError(f"{redacted(address)}: expected an address that begins with https:// or http://")
    part, tag = file.with_name(file.name + ".part"), file.with_name(file.name + ".part.etag")
    with writing(file.name, file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        have = part.stat().st_size if part.is_file() and tag.is_file() else 0
        request = urllib.request.Request(address)  # noqa: S310 - the scheme was looked at
        if have:
            request.add_header("Range", f"bytes={have}-")
            request.add_header("If-Range", tag.read_text(encoding="utf-8"))
        try:
            with urllib.request.urlopen(request, timeout=SILENCE) as answer:  # noqa: S310
                _receive(answer, part, tag, have, progress)
        except urllib.error.HTTPError as error:
            if error.code == 416 and have:  # what is there is no beginning of what the server has now
                part.unlink()
                return download(address, file, progress)
            why = "there is no such file" if error.code in _MISSING else "the server answered with an error"
            raise InputError(f"{redacted(address)}: {why} ({error.code}); give another place with --from") from None
        except urllib.error.URLError as error:
            raise OutOfReach(
                f"{redacted(address)}: out of reach ({first_line(error)}); check the network, or give another place "
                "with --from"
            ) from None
        except (HTTPException, TimeoutError, ConnectionError) as error:
            raise _broken(address, first_line(error)) from None
        part.rename(file)
        tag.unlink(missing_ok=True)
    return file


def _receive(answer: HTTPResponse, part: Path, tag: Path, have: int, progress: Progress | None) -> None:
    goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
    if not goes_on:
        have = 0
    rest = int(answer.headers.get("Content-Length") or 0)
    free = shutil.disk_usage(part.parent).free
    if rest > free:
        raise InputError(
            f"{part.parent}: {part.stem} needs {rest / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free there; free some "
            "space, or set HARNESS_CACHE to a folder on another disk"
        )
    etag = answer.headers.get("ETag", "")
    if etag and not etag.startswith("W/"):  # without one nobody can say whether a rest belongs to a beginning
        tag.write_text(etag, encoding="utf-8")
    else:
        tag.unlink(missing_ok=True)
    got = 0
    with part.open("ab" if goes_on else "wb") as file:
        while chunk := answer.read(_CHUNK):
            file.write(chunk)
            got += len(chunk)
            if progress is not None:
                progress(have + got, have + rest if rest else 0)
    if got < rest:
        raise _broken(answer.url, f"{got:,} of {rest:,} bytes came")


def _broken(address: str, why: str) -> RunError:
    return RunError(
        f"{redacted(address)}: the connection broke ({why}); what was downloaded is kept, give the same command again"
    )


def sha256_of(file: Path) -> str:
    """The hash of a file's bytes, in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verify(file: Path, name: str, known: Path) -> str:
    """The sha256 of a file, compared with that of the first one called `name`, which the JSON file `known` keeps.

    Raises:
        InputError: it has other bytes than then.
    """
    found = sha256_of(file)
    checksums = read_json(known) if known.is_file() else {}
    first = checksums.setdefault(name, {"sha256": found, "bytes": file.stat().st_size})
    if first["sha256"] != found:
        raise InputError(
            f"{file}: is not what {name} was at first (sha256 {found[:16]}, then {first['sha256'][:16]}); delete it "
            f'and prepare it again, or delete the entry "{name}" of {known} if it has changed by right'
        )
    with writing("checksums", known.parent):
        write_atomic(known, json.dumps(checksums, indent=1) + "\n")
    return found
