"""A benchmark and comparison harness for self-supervised sentence embeddings.

The ground floor: it knows no method, study or report by name; they come in by entry points. Importing it is free.
"""

__version__ = "0.1.0"
