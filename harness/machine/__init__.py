"""The machine that a run is on: its devices and processes, what is recorded of it, and progress
shown on it.
"""
