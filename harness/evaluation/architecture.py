"""What a sentence costs an encoder, by its build alone: two encoders of one architecture cost the same, whatever their
weights."""

from __future__ import annotations

from harness.encoder import Encoder
from harness.errors import NotFitted
from harness.files.hashing import content_id
from harness.method import Method

# Options of transformers that change the work and no shape.
_WORK = ("model_type", "num_attention_heads", "num_hidden_layers", "hidden_act", "attention_window", "sliding_window")
_SAME_WORK = {"cls": "mean"}  # one vector of the last layer, whichever way


def architecture(method: Method) -> str:
    """A short hash of a fitted method's build: its transformer, pooling, what comes after, and its longest text.

    Encoders without a transformer of ours (word vectors, a flow, recurrent layers, several joined) have one of their
    own: method, config and base model.
    """
    own = {"method": method.name, "config": method.config.model_dump(mode="json"), "base": method.base_model}
    try:
        encoder = method.encoder
    except NotFitted:
        encoder = None
    if not isinstance(encoder, Encoder) or not hasattr(encoder, "transformer"):
        return content_id(own)
    if type(method).encode is Method.encode:
        own = {}
    config = encoder.transformer.config
    pooling = encoder.pooling.name
    return content_id(
        {
            **own,
            "shapes": [[name, list(tensor.shape)] for name, tensor in encoder.state_dict().items()],
            "work": {key: getattr(config, key, None) for key in _WORK},
            "pooling": [_SAME_WORK.get(pooling, pooling), encoder.pooling.first_layer],
            "max_length": encoder.max_length,
        }
    )
