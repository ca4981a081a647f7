"""Evaluation tasks: each announces its texts, is handed their vectors, and returns scores with
protocol ids.
"""
