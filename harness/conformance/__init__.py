"""What every method promises, each promise a check: used by `harness.testing` and `harness check-method`."""

from harness.conformance.checks import CHECKS, run_check
from harness.conformance.subject import Check, Subject

__all__ = ["CHECKS", "Check", "Subject", "run_check"]
