"""`harness push`: a trained model to the hub, with its card; no checkpoint and no text leaves."""

from __future__ import annotations

import argparse
import os
import re
from fnmatch import fnmatch
from pathlib import Path

from harness.errors import InputError, RunError
from harness.files.names import name_fault
from harness.files.printable import one_line, tell
from harness.method import METHOD_FILE

# What a saved model is made of. Anything else that lies beside it stays here.
MODEL_FILES = ("README.md", "*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.model")
_REPOSITORY = r"[\w][\w.-]*/[\w][\w.-]*"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness push` to the command line."""
    parser = subparsers.add_parser(
        "push",
        help="upload a trained model with its card to the hub",
        description="Upload the saved model of a run: weights, tokenizer, configuration and card; no checkpoint, no "
        "scores of pairs, no text. The token is that of huggingface_hub (`hf auth login`, or HF_TOKEN).",
        epilog="example: harness push work/demo/runs/ID org/name --dry-run",
    )
    parser.add_argument("run_name", metavar="RUN", help="a run's id or folder, or the folder of a saved model")
    parser.add_argument("repository", help="ORG/NAME on the hub; made if it is not there")
    parser.add_argument("--workdir", type=Path, default=Path("work"), help="where a run of that id is (default: work)")
    parser.add_argument("--public", action="store_true", help="for all to see (default: private)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be uploaded; nothing is sent")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print every file, then where they are."""
    folder = model_folder(args.run_name, args.workdir)
    files = model_files(folder)
    for file in files:
        tell(f"{(folder / file).stat().st_size:>12,}  {file}")
    if args.dry_run:
        tell(f"would be uploaded to {args.repository} ({'public' if args.public else 'private'}); nothing was sent")
        return 0
    tell(f"uploaded: {push(folder, args.repository, private=not args.public)}")
    return 0


def model_folder(run: str, workdir: Path) -> Path:
    """The saved model of a run.

    Raises:
        InputError: no such run, or its weights were not kept.
    """
    places = [Path(run), Path(run) / "model"]
    if name_fault(run) is None:
        places.append(workdir / "runs" / run / "model")
    for place in places:
        if (place / METHOD_FILE).is_file() or (place / "modules.json").is_file():
            return place
    raise InputError(f'harness push "{one_line(run)}": no saved model there; name a run of {workdir}, or a folder '
                     "(the weights of a run stay where `keep` says so)")  # fmt: skip


def model_files(folder: Path) -> list[str]:
    """The files of a saved model that are uploaded, by path."""
    every = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return [
        file.as_posix()
        for file in every
        if any(fnmatch(file.name, pattern) for pattern in MODEL_FILES)
        and not any(part.startswith((".", "checkpoint")) for part in file.parts)
    ]


def push(folder: Path, repository: str, *, private: bool = True) -> str:
    """Upload the files of a saved model in one commit; the address of the model.

    Raises:
        InputError: no name of a repository, or the hub refuses: no token, no right.
        RunError: the connection broke.
    """
    if not re.fullmatch(_REPOSITORY, repository, re.ASCII):
        raise InputError(f'harness push: "{one_line(repository)}": expected ORG/NAME')
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    from harness.sources.remote.hub import is_broken_connection

    hub = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    try:
        hub.create_repo(repository, private=private, exist_ok=True)
        hub.upload_folder(
            repo_id=repository, folder_path=folder, allow_patterns=model_files(folder), commit_message="Trained model"
        )
    except LocalTokenNotFoundError:
        raise InputError("harness push: no token; `hf auth login`, or set HF_TOKEN") from None
    except HfHubHTTPError as error:
        said = one_line(str(error).partition("\n")[0])
        if error.response is not None and error.response.status_code in (401, 403, 404):
            raise InputError(
                f"harness push {repository}: the hub refuses ({said}); `hf auth login`, or set HF_TOKEN"
            ) from None
        raise RunError(f"harness push {repository}: {said}; nothing was changed here") from None
    except Exception as error:
        if not is_broken_connection(error) and not isinstance(error, OSError):
            raise
        raise RunError(f"harness push {repository}: {one_line(str(error))}; nothing was changed here") from None
    return f"{hub.endpoint}/{repository}"
