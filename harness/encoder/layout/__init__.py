"""The SentenceTransformer layout: encoders made from base models, read from folders and written to them."""
