"""What a run's weights or a score depend on: code in reviewed versions, models by content.

The numerical code is cut into parts, which the `ledger.toml` of each package lists with their versions. An id names the
versions of the parts that it rests on, so tidying changes none. A test holds the ledgers against the code; when it
fails, `python -m harness.identity` says where, and what to enter:

    python -m harness.identity bump PART --because "..."        the numbers change: runs that rest on it are made anew
    python -m harness.identity no-effect PART --because "..."   they do not, for any setting: all ids stay
    python -m harness.identity moved                            modules were moved unchanged
"""
