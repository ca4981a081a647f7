"""Rows of several senders on one page."""
