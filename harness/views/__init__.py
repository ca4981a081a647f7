"""Views: two changed copies of each sentence, made the same way for every method that learns from
pairs of views.

A view is a name or a chain of names, each with a rate in `ViewConfig`: dropout inside the encoder,
tokens shuffled, deleted, repeated or cropped away, easy data augmentation (EDA) of the words, the
other half of a paraphrase pair, or another crop of the same document.
"""

from harness.views.make import Views, encode_views, make_views
from harness.views.settings import ViewConfig
from harness.views.tokens import crop_tokens, delete_tokens, repeat_tokens, shuffle_tokens

__all__ = [
    "ViewConfig",
    "Views",
    "crop_tokens",
    "delete_tokens",
    "encode_views",
    "make_views",
    "repeat_tokens",
    "shuffle_tokens",
]
