"""What reports compute of records: overlaps of texts, costs, layers, and all runs of a work directory."""
