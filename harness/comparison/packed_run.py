"""The folder of a run as an archive, between a work directory and a worker that does not see it."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from pathlib import Path

from harness.files.atomic import settle
from harness.results.run_folder import RunFolder


def packed(folder: RunFolder) -> bytes:
    """The folder of a run as an archive: with its checkpoint where it will go on from that, without its lock."""
    record, buffer = folder.read_if_sound(), io.BytesIO()
    over = record is not None and record.status != "failed"
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for file in sorted(folder.path.iterdir()):
            if not file.name.startswith(".lock") and not (over and file == folder.checkpoint):
                archive.add(file, arcname=file.name)
    return buffer.getvalue()


def unpack(archive: bytes, folder: RunFolder) -> None:
    """Put a run that was made elsewhere into its folder; the record comes last, so that a kill leaves no half of it."""
    folder.path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.path.parent, prefix=".unpacking-") as temporary:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed_run:
            packed_run.extractall(temporary, filter="data")
        settle(Path(temporary))
        files = sorted(Path(temporary).iterdir(), key=lambda file: (file.name == folder.record_file.name, file.name))
        folder.path.mkdir(parents=True, exist_ok=True)
        for file in files:
            place = folder.path / file.name
            if place.is_dir():
                shutil.rmtree(place)
            file.replace(place)
