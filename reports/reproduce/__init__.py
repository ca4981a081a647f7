"""`harness reproduce`: the runs behind a cell of a report, made again."""
