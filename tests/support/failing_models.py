"""Models whose encoding fails, as other processes can import them."""

from __future__ import annotations

import os
from typing import Any


class RunsOutOfMemory:
    """Raises what PyTorch raises where a device has too little memory."""

    def encode(self, texts: list[str], **options: Any) -> Any:
        import torch

        return torch.empty(1 << 60)


def execute_with_little_memory(connection: Any, job: Any, workdir: Any) -> None:
    """Execute a job in a process that may take 300 MiB more than its libraries; send status and
    reason.
    """
    import resource

    import psutil

    from harness.encoder import Encoder
    from harness.runs.execute import execute

    Encoder.load(job.spec.base_model).encode(["A text."])
    limit = psutil.Process().memory_info().vms + 300 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    record = execute(job, workdir)
    connection.send((record.status, record.reason))


def end_at_once(connection: Any, *arguments: Any) -> None:
    """End this process as the system does where memory runs out."""
    os._exit(137)


def send_text(connection: Any, answer: Any) -> None:
    """Send an answer."""
    connection.send(answer)
