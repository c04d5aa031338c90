"""A recipe: every setting of a training run, stored as a JSON file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

from radialbeams.cards import Card
from radialbeams.nn.architectures import Config, architecture, parse_config
from radialbeams.nn.losses import RingLoss
from radialbeams.nn.prior import PRIOR_MODES, PriorMode
from radialbeams.nn.rotation import PADDINGS, REACH, Padding
from radialbeams.stored import JsonDict, JsonFields, check_fields
from radialbeams.training.augment import Augmentation
from radialbeams.training.views import GROUPS, PROTOCOLS, Group, Protocol

# The fields of a recipe in a JSON file. Missing fields get their defaults.
RecipeFields = JsonFields
Draw = Literal["view", "image"]
Schedule = Literal["constant", "one-cycle"]


@dataclass(frozen=True)
class Recipe:
    """Every setting of a run. The defaults are the paper's except where marked."""

    data: str
    model: Config
    parent_size: int = 128  # W: side of the upright images from which views are rendered
    protocol: Protocol = "paper"
    sigma: float | None = None  # blur of leak-free views, in parent pixels; None: from the sizes
    reach: float = REACH  # disc radius of leak-free views, as a share of the parent's half-width
    split_by: str = "default"
    repeats: dict[str, int] = field(
        default_factory=dict
    )  # per group: how often an epoch contains it
    padding: Padding = "zeros"
    # Differs from the paper: it draws from C_|B| unless stated otherwise.
    group: Group = "so2"  # the group from which angles are drawn
    draw: Draw = "view"  # a new angle for every view, or one per image as in the authors' code
    prior: PriorMode = "off"
    loss: RingLoss = field(default_factory=RingLoss)  # of the ring only
    batch: int = 128
    steps: int = 4096
    learning_rate: float = 1e-4
    schedule: Schedule = "constant"
    weight_decay: float = 0.0
    average: float = 0.0  # decay of the exponential moving average of the weights; 0 = off
    clip: float = 0.0  # largest gradient norm; 0 = off
    frozen: int = 0  # number of first blocks of a convolutional network to freeze
    augmentation: Augmentation = field(default_factory=Augmentation)
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in (
            ("protocol", PROTOCOLS),
            ("padding", PADDINGS),
            ("group", GROUPS),
            ("draw", get_args(Draw)),
            ("prior", PRIOR_MODES),
            ("schedule", get_args(Schedule)),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}."
                )
        for group, times in self.repeats.items():
            if times < 1:
                raise ValueError(f"repeats must be at least 1; got {times} for {group!r}.")
        for name, least in (
            ("batch", 1),
            ("steps", 1),
            ("seed", 0),
            ("parent_size", 1),
            ("frozen", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}.")
        for name, most in (("parent_size", 4096), ("batch", 2**20), ("seed", 2**63 - 1)):
            if getattr(self, name) > most:
                raise ValueError(f"{name} must be at most {most}; got {getattr(self, name)}.")
        if not 0 <= self.average < 1:
            raise ValueError(f"average must lie in [0, 1); got {self.average}.")
        if self.prior != "off" and not architecture(self.model).has_prior:
            raise ValueError(
                "The Toeplitz prior works with the paper's decoder only. Set prior to off."
            )
        if self.sigma is not None and (self.protocol != "leakfree" or self.sigma <= 0):
            raise ValueError(
                f"sigma is the blur of leak-free views, above 0; got {self.sigma} for "
                f"{self.protocol} views."
            )

        if not 0 < self.reach <= 1:
            raise ValueError(f"reach must lie in (0, 1]; got {self.reach}.")

    @classmethod
    def from_dict(cls, values: RecipeFields) -> Recipe:
        check_fields("a recipe", values, cls)
        for name in ("data", "model"):
            if name not in values:
                raise ValueError(f"A recipe needs {name}; this one has none.")
        augmentation, loss = values.get("augmentation", {}), values.get("loss", {})
        check_fields("an augmentation", augmentation, Augmentation)
        check_fields("a loss", loss, RingLoss)
        parts = {
            "model": parse_config(values["model"]),
            "augmentation": Augmentation(**augmentation),
            "loss": RingLoss(**loss),
        }
        return cls(**{**values, **parts})

    @classmethod
    def of_card(cls, card: Card) -> Recipe:
        """The recipe that a model was trained with."""
        if card.training is None:
            raise ValueError(f"The card of {card.name or 'this model'} has no recipe.")
        return cls.from_dict(card.training.recipe)

    def to_dict(self) -> JsonDict:
        return {**asdict(self), "model": self.model.to_dict()}
