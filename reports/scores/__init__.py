"""Scores that others made: verdicts and a report without records."""
