"""Runs of comparisons and studies: planned as specifications, executed anywhere, recorded in a work
directory.
"""
