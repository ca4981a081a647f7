"""Sentence-embedding methods, one a file, found by the harness through the entry-point group
`harness.methods`.
"""
