"""What is kept of runs: records, run folders, manifests, identities, model cards, published numbers."""
