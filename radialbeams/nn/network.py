"""The base classes of networks: a configuration that can be stored, and named outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import ClassVar, Self, get_origin, get_type_hints

from torch import Tensor, nn

from radialbeams.stored import JsonDict, JsonFields, check_fields


@dataclass(frozen=True)
class NetworkConfig:
    """The settings that build a network. A subclass adds its own and checks them."""

    architecture: str = ""  # a row of `architectures.ARCHITECTURES`
    view_size: int = 182  # S: the side of a view in pixels
    channels: int = 3  # C

    # The smallest and largest value of each number. The largest is far above any useful value; it
    # only ensures that a damaged or hostile file cannot exhaust the memory.
    LIMITS: ClassVar[Mapping[str, tuple[int, int]]] = {"view_size": (1, 4096), "channels": (1, 64)}

    def __post_init__(self) -> None:
        own = next(field.default for field in fields(self) if field.name == "architecture")
        if self.architecture != own:
            raise ValueError(f"architecture must be {own}; got {self.architecture!r}.")
        for name, (least, most) in self.LIMITS.items():
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} must be at least {least}; got {value}.")
            if value > most:
                raise ValueError(f"{name} must be at most {most}; got {value}.")

    @property
    def num_bins(self) -> int:
        """The number of directions into which the circle is divided."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, values: JsonFields) -> Self:
        """A configuration from a file; refuses unknown fields and values of the wrong type."""
        check_fields("a model configuration", values, cls)
        declared = get_type_hints(cls)
        plain: JsonDict = {  # JSON has no tuples
            name: tuple(value) if get_origin(declared[name]) is tuple else value
            for name, value in values.items()
        }
        return cls(**plain)

    def to_dict(self) -> JsonDict:
        values = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


class Network(nn.Module):
    """Views (N, C, S, S) in [0, 1] → one unit vector each, or logits and offsets for each bin."""

    outputs: ClassVar[tuple[str, ...]]  # their names in the exported file
    full_precision: ClassVar[tuple[str, ...]] = ()  # parts that always stay float32

    config: NetworkConfig

    def angles(self, views: Tensor) -> Tensor:
        """(N, C, S, S) → (N,) radians in [0, 2π)."""
        raise NotImplementedError
