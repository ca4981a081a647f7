"""Training text: the catalogue of names, readers of files and hub data sets, and the corpus that
methods learn from.
"""
