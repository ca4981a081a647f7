"""What devices can do at most: by their name, or as they are."""

from __future__ import annotations

import pytest

from harness.machine.peak import sheet_flops


@pytest.mark.parametrize(
    ("name", "precision", "tera"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16", 989.5),
        ("NVIDIA H100 PCIe", "fp32", 51),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156),
        ("NVIDIA A100 80GB PCIe", "fp16", 312),
        ("NVIDIA L40S", "bf16", 362),
        ("NVIDIA L4", "bf16", 121),
        ("Tesla V100-SXM2-16GB", "fp16", 125),
    ],
)
def test_a_gpu_is_known_by_the_words_of_its_name(name: str, precision: str, tera: float) -> None:
    assert sheet_flops(name, precision) == tera * 1e12


def test_what_is_not_on_a_data_sheet_is_left_to_be_measured() -> None:
    assert sheet_flops("NVIDIA A10G", "fp16") is None  # no A10
    assert sheet_flops("NVIDIA L40", "fp16") is None  # neither L4 nor L40S
    assert sheet_flops("Tesla T4", "bf16") is None
