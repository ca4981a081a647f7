"""Runs in MLflow."""
