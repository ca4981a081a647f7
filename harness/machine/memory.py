"""Running out of memory: how to know it, what helps, and how many runs fit beside each other."""

from __future__ import annotations

ADVICE = (
    "set micro_batch = 32 or gradient_checkpointing = true, take a smaller batch_size, or let fewer "
    "runs share the memory (executor.workers; on a GPU executor.gpus_per_run)"
)
_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "cannot allocate memory")
_ROOM = 0.9  # of the memory: the rest is for the system, and for what a longer batch takes


def is_out_of_memory(error: BaseException) -> bool:
    """Is the error, or what caused it, a want of memory of a processor or a GPU?

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(ValueError("a bad value"))
    (True, False)
    >>> is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."))
    True
    """
    while True:
        text = str(error).lower()
        if isinstance(error, MemoryError) or any(words in text for words in _WORDS):
            return True
        cause = error.__cause__
        if cause is None and not error.__suppress_context__:
            cause = error.__context__
        if cause is None:
            return False
        error = cause


def runs_beside(peak: float, total: float) -> int:
    """How many runs that each take `peak` bytes fit into `total` bytes; at least one.

    >>> gib = 2**30
    >>> runs_beside(11 * gib, 80 * gib), runs_beside(100 * gib, 80 * gib)
    (6, 1)
    """
    return max(1, int(_ROOM * total / max(peak, 1.0)))


def free_bytes(device: str) -> float:
    """Bytes of memory that runs on a device may take: of a GPU all it has, else what is available
    here, in the limit of the control group.
    """
    if device.startswith("cuda"):
        import torch

        return float(torch.cuda.get_device_properties(device).total_memory)
    import psutil

    from harness.machine.environment import memory_bytes

    return float(min(psutil.virtual_memory().available, memory_bytes()))
