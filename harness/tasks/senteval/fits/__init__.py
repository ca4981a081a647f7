"""The classifiers of SentEval, all fits of a task solved side by side."""
