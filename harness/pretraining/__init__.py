"""Masked-language pretraining, from scratch or continued."""
