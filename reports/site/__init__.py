"""All reports of a work directory as one static site: an index, its pages, and two runs side by side."""
