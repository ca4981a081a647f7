"""SentEval's tasks, by its protocol: transfer, probing, regression on pairs, caption retrieval."""
