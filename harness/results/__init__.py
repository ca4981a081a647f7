"""What is saved of runs: records, run folders, manifests, identities, model cards, published
numbers.
"""
