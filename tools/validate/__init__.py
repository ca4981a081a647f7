"""Evidence that the numbers of this package are right, for docs/validation.md.

    python -m tools.validate [--only PART] [--again]

Each part measures cases one after another, and each case is saved at once in `measured.csv`, with
its date and versions. Cases that are there are not measured again, so that the same command goes on
where it was cut off. `python -m docs.make` writes the tables of the page from that file.
"""
