"""The conformance kit: does a method keep the promises of the interface? For the tests of whoever
writes methods.

    from harness.testing import assert_method

    def test_my_method():
        assert_method("my_method")

On the command line: `harness check-method my_method`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness import registry
from harness.conformance import CHECKS, Check, Subject, run_check
from harness.method import DEFAULT_BASE_MODEL, Method
from harness.recipes import preset_names

__all__ = ["Check", "assert_method", "check_method"]


def check_method(
    method: type[Method] | str,
    *,
    config: Mapping[str, Any] | None = None,
    preset: str | None = None,
    base_model: str = DEFAULT_BASE_MODEL,
    progress: Callable[[str], None] | None = None,
) -> list[Check]:
    """Every promise of the interface, checked on small embedded data; a few seconds a method.

        >>> checks = check_method("pooling")
        >>> [check.name for check in checks if not check.passed]
        []

    Args:
        method: a class, or the name of an installed method.
        config: settings on top of the preset, for a method that cannot do without them.
        preset: by default "mini" where the method has it.
        base_model: an embedded model keeps the checks fast.
        progress: called with the name of each check before it is run.

    Returns:
        All checks in a fixed order. What cannot apply to a method counts as passed, and its detail
        says so.

    Raises:
        InputError: unknown method or preset, or a config that is not valid.
    """
    import torch

    if isinstance(method, str):
        cls: type[Method] = registry.load(registry.METHODS, method)
    else:
        cls = method
    if preset is None and "mini" in preset_names(cls.presets):
        preset = "mini"
    with (
        tempfile.TemporaryDirectory(prefix="harness-check-") as folder,
        torch.random.fork_rng(devices=[]),
    ):
        subject = Subject(
            cls,
            dict(config or {}),
            preset,
            base_model,
            Path(folder),
            entry=method if isinstance(method, str) else None,
        )
        _ = subject.config  # a wrong config is the caller's error, not a failed check
        checked = []
        for name in CHECKS:
            if progress is not None:
                progress(name)
            checked.append(run_check(name, subject))
    return checked


def assert_method(method: type[Method] | str, **options: Any) -> None:
    """`check_method` for a test: raises an AssertionError that lists every broken promise.

    >>> assert_method("pooling")
    """
    broken = [check for check in check_method(method, **options) if not check.passed]
    if broken:
        if isinstance(method, str):
            name = method
        else:
            name = method.__name__
        lines = [f"{name} breaks {len(broken)} promise(s) of a method:"]
        raise AssertionError(
            "\n".join([*lines, *(f"  {check.name}: {check.detail}" for check in broken)])
        )
