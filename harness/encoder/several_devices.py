"""Texts that several devices encode at the same time, each in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.encoder.dropout import register_attention
from harness.errors import HarnessError, InputError, RunError
from harness.files.printable import first_line
from harness.machine.new_process import start_process
from harness.machine.progress import encoding_bar, watch_encoding

_TICK = 1.0  # seconds between two questions whether the encoding has to stop
_REMEDY = "a smaller batch size, or fewer devices"


@dataclass
class _Helper:
    """A process that encodes a share of the texts.

    Attributes:
        texts: its share.
        vectors: once they have arrived.
    """

    process: BaseProcess
    connection: Connection
    device: str
    texts: list[str]
    vectors: NDArray[np.float32] | None = None


def encode_texts(model: Any, texts: Sequence[str], devices: Sequence[str], **options: Any) -> Any:
    """Return the vectors of texts by `model.encode`, on one device or on several at a time.

    Raises:
        RunError: as `encode_on_devices`.
    """
    if len(devices) > 1 and texts:
        return encode_on_devices(model, texts, devices, **options)
    return model.encode(texts, device=devices[0], **options)


def encode_on_devices(
    model: Any,
    texts: Sequence[str],
    devices: Sequence[str],
    *,
    show_progress_bar: bool = False,
    **options: Any,
) -> NDArray[np.float32]:
    """Vectors (n, d) of texts by `model.encode`, a process a device; equal to those of one device
    up to rounding, since batches hold other texts.

    Each device gets as many texts of each length as the others. The model is sent to the processes,
    so that whatever was set in it holds there.

    Args:
        options: of `model.encode`, such as `batch_size`.

    Raises:
        InputError: the model cannot be sent.
        RunError: a process failed, or ended, most often for want of memory.
    """
    distinct = sorted(dict.fromkeys(texts), key=len)
    helpers: list[_Helper] = []
    try:
        for number, device in enumerate(devices):
            share = distinct[number :: len(devices)]
            if share:
                started = start_process(_encode_share, len(devices))
                helpers.append(_Helper(*started, device, share))
        for helper in helpers:  # all of them have begun to start
            _send(helper, model, options)
        with encoding_bar(len(distinct), show=show_progress_bar) as advance:
            _collect(helpers, advance)
    finally:
        for helper in helpers:
            helper.process.kill()
            helper.process.join()
            helper.connection.close()
    row_of: dict[str, int] = {}
    for helper in helpers:
        for text in helper.texts:
            row_of[text] = len(row_of)
    whole = np.concatenate([helper.vectors for helper in helpers if helper.vectors is not None])
    return whole[[row_of[text] for text in texts]]


def _send(helper: _Helper, model: Any, options: dict[str, Any]) -> None:
    """Send a helper the model, whose weights processes share, and its texts.

    Raises:
        InputError: the model cannot be sent, as a function of a notebook.
    """
    try:
        helper.connection.send((model, helper.device, helper.texts, options))
    except OSError:  # it has ended, which is found when its answer is awaited
        return
    except Exception as error:  # of any class that a model holds
        raise InputError(
            f"the model cannot be sent to other processes: {first_line(error):.200}",
            key="device",
            remedy="name one device",
        ) from None


def _collect(helpers: Sequence[_Helper], advance: Any) -> None:
    """Wait for the vectors of all helpers; who watches the encoding can stop it.

    Raises:
        RunError: a helper failed or ended.
    """
    waiting = {helper.connection: helper for helper in helpers}
    while waiting:
        ready = wait(list(waiting), timeout=_TICK)
        if not ready:
            advance(0)
        for connection in ready:
            helper = waiting[connection]  # type: ignore[index]
            answer = _receive(helper)
            if isinstance(answer, int):
                advance(answer)
            else:
                helper.vectors = answer
                del waiting[helper.connection]


def _receive(helper: _Helper) -> Any:
    """Return the next answer of a helper: how many texts it encoded, or their vectors.

    Raises:
        RunError: it failed or ended.
    """
    try:
        answer = helper.connection.recv()
    except (EOFError, OSError):
        message = f"the process that encoded on {helper.device} ended; most often there is too "
        raise RunError(f"{message}little memory ({_REMEDY})") from None
    if isinstance(answer, str):
        raise RunError(f"encoding on {helper.device} failed: {answer}")
    return answer


def _encode_share(connection: Connection, several: int) -> None:
    """Encode the texts that arrive, in a process of its own, and send their vectors."""
    import torch

    done = 0

    def report(now: int, total: int) -> None:
        nonlocal done
        connection.send(now - done)
        done = now

    try:
        register_attention()  # before the model arrives, whose layers name it
        model, device, share, options = connection.recv()
        if device == "cpu":
            torch.set_num_threads(max(1, torch.get_num_threads() // several))
        with watch_encoding(report):
            vectors = model.encode(share, device=device, **options)
        connection.send(np.ascontiguousarray(vectors, dtype="<f4"))
    except HarnessError as error:
        connection.send(str(error))
    except Exception as error:  # of any library, out of memory above all
        connection.send(f"{type(error).__name__}: {first_line(error):.300}")
