"""What every method promises, each promise a check: used by `harness.testing` and `harness check-method`."""

from harness.conformance.subject import Check, Subject
from harness.conformance.suite import CHECKS, run_check

__all__ = ["CHECKS", "Check", "Subject", "run_check"]
