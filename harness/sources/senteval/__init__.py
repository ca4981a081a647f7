"""Readers of SentEval's files."""
