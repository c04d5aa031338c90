"""Configurations of the first format: one class had the settings of both decoders.

Cards, recipes and checkpoints that were written then are read as the network that they name; the
settings of the other decoder, which never did anything, are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LSTM_ONLY = ("latent", "context_layers", "edge_factor", "hub", "lstm_layers")
RING = ("stem", "stem_stride", "stages", "depth", "width", "dilations", "attention", "drop")
RING_ONLY = tuple(f"ring_{name}" for name in RING)


def as_now(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same settings as the present format names them."""
    if "architecture" in values:
        return values
    name = values.get("decoder", "lstm")
    other = LSTM_ONLY if name == "ring" else RING_ONLY
    found = {
        key.removeprefix("ring_") if key in RING_ONLY else key: value
        for key, value in values.items()
        if key != "decoder" and key not in other
    }
    return {"architecture": name, **found}
