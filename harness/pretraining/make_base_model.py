"""From texts to a base model in a folder: what stands behind `harness pretrain`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InputError, TrainingStopped
from harness.files.locks import work_lock
from harness.machine.devices import pick_device
from harness.machine.progress import Reporter
from harness.pretraining.masked_lm_pretraining import Pretraining
from harness.pretraining.model_folder import save
from harness.pretraining.options import PretrainingConfig
from harness.sources import load_corpus
from harness.sources.corpus.uri import locate

if TYPE_CHECKING:
    from harness.sources import Corpus


@dataclass(frozen=True)
class PretrainedModel:
    """A base model that was made, and its validation loss in nats a masked token."""

    folder: Path
    loss: float
    initial: float  # before the first update
    steps: int


def make_base_model(
    config: PretrainingConfig,
    corpora: Sequence[str],
    out: Path,
    *,
    column: str | None = None,
    limit: int | None = None,
    device: str = "auto",
    progress: Reporter | None = None,
) -> PretrainedModel:
    """Pretrain on texts and save a Hugging Face folder; a call that was interrupted goes on.

    Args:
        corpora: text URIs.
        out: folder of the model; checkpoints and curves lie beside it until it is saved.
        column, limit: of the text in a file with several columns, and how many items of each corpus at most.
        progress: what shows how far it is.

    Raises:
        InputError: `out` exists, or text or a base model that cannot be had.
        TrainingStopped: the training diverged.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(f"--out {out}: exists already; name another folder or delete it")
    where = pick_device(device)
    texts = [_corpus(uri, column, limit) for uri in corpora]
    folder = out.with_name(out.name + ".training")
    with work_lock(folder), progress or Reporter(1, quiet=True) as shown:
        shown.start("pretrain")
        pretraining = Pretraining(config, texts, folder=folder, device=where, progress=shown.step)
        try:
            loss = pretraining.run()
        except TrainingStopped as stop:
            shown.done(f"{stop.status}: {stop.reason} (curves: {folder / 'curves.jsonl'})")
            raise
        save(pretraining, out)
        shown.done(f"saved to {out}")
    shutil.rmtree(folder, ignore_errors=True)
    return PretrainedModel(out, loss, pretraining.initial, pretraining.step)


def _corpus(uri: str, column: str | None, limit: int | None) -> Corpus:
    """The texts behind `uri`: what it is known to hold, else one text a line or row."""
    kind = locate(uri).kind or "sentences"
    columns = {"text": column} if column else None
    return load_corpus(uri, kind="sentences" if column else kind, columns=columns, limit=limit)  # type: ignore[call-overload, no-any-return]
