"""What a run's weights or a score depend on: code in reviewed versions, models by content.

The numerical code is cut into parts, listed with their versions in the `ledger.toml` of each package. An id names the
versions of the parts that it rests on, so tidying changes none; CONTRIBUTING.md tells what to do when a part changes.
"""
