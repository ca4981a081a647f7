"""Tasks of a user's own files: one module a kind, and `open_file`, which chooses among them."""
