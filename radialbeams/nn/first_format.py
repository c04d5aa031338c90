"""Reads configurations of the first format, in which one class had the settings of both decoders.

Only the settings of the decoder in use are kept; those of the other one had no effect.
"""

from __future__ import annotations

from radialbeams.stored import JsonFields

LSTM_ONLY = ("latent", "context_layers", "edge_factor", "hub", "lstm_layers")
RING = ("stem", "stem_stride", "stages", "depth", "width", "dilations", "attention", "drop")
RING_ONLY = tuple(f"ring_{name}" for name in RING)


def as_now(values: JsonFields) -> JsonFields:
    """The same settings in the current format."""
    if "architecture" in values:
        return values
    name = values.get("decoder", "lstm")
    foreign = LSTM_ONLY if name == "ring" else RING_ONLY
    current = {
        key.removeprefix("ring_") if key in RING_ONLY else key: value
        for key, value in values.items()
        if key != "decoder" and key not in foreign
    }
    return {"architecture": name, **current}
