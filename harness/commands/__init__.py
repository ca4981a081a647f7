"""The sub-commands of `harness`, one a file."""
