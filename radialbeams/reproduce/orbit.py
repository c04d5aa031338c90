"""Whether the beam embeddings over an image's orbit form a circle, and whether it is learned.

An image is rotated by every element of C_|B|, and all its beams are embedded, before the context:
|B|² points. After a rotation, a beam samples what another beam sampled in the upright image, so
each point has a *direction*: that of its content in the upright image.

Any continuous network maps the circle of directions to a closed curve. One point for each direction
is drawn from random rotations. Three measures show whether these points form a circle in the space
of embeddings: persistent homology; a circular coordinate that is fitted to every second direction;
and the nearest neighbours of the points. Three controls show whether the circle was learned: the
same network before training, the pixels of the beams, and the embeddings with each coordinate
shuffled among the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from radialbeams.extras import install_command
from radialbeams.nn.angles import TURN
from radialbeams.nn.architectures import Network, build
from radialbeams.nn.bic import BIC
from radialbeams.reproduce import paper
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.fine_orbit import order
from radialbeams.reproduce.homology import one_circle
from radialbeams.reproduce.seed_statistics import compare, spread
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.thumbnails import encode
from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.reproduce.trainings import PlannedTraining
from radialbeams.reproduce.trainings import load as load_trained
from radialbeams.stored import JsonDict
from radialbeams.training.data import load
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import PaperViews

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "orbit"
BEAMS = 64
DATA = {"coil100": 128, "lfw": 250}  # the data sets, with the width of their images
TITLES = {"coil100": "COIL-100", "lfw": "LFW"}
THUMBNAIL_SIZE = 48  # pixels of a picture in the figure; never of faces
BATCH = 16
GRID = 1000  # steps of the stored coordinates of a layout
# The paper's settings; its learning rate max(n / (0.25e), 50) is scikit-learn's n / e / 4.
TSNE: JsonDict = {
    "perplexity": 100,
    "early_exaggeration": 12,
    "max_iter": 1000,
    "init": "random",
    "learning_rate": "auto",
    "min_grad_norm": 1e-7,
    "metric": "euclidean",
    "method": "barnes_hut",
}
RIDGE = 0.01  # of the mean square of a point
CIRCLE = 0.5  # the lowest score that is called a circle
KINDS = ("trained", "untrained", "pixels", "shuffled")

# --- the orbit ---


@dataclass(frozen=True)
class Orbit:
    """Points (n, L), the rotation that each comes from, and the direction of its content."""

    points: NDArray[np.float32]
    turns: NDArray[np.int64]
    directions: NDArray[np.int64]  # in steps of 360°/|B| counter-clockwise from beam 0

    def shuffled(self, seed: int) -> Orbit:
        """The same values of every coordinate, permuted among the points."""
        rng = np.random.default_rng(seed)
        return Orbit(rng.permuted(self.points, axis=0), self.turns, self.directions)


@torch.inference_mode()
def orbit(model: Network, image: Tensor, every: int = 1, *, pixels: bool = False) -> Orbit:
    """The orbit of bytes (3, W, W) at every `every`-th rotation of C_|B|; `pixels`: raw beams."""
    if not isinstance(model, BIC):
        raise ValueError(
            "Expected the paper's network, which embeds each beam separately; got "
            f"{type(model).__name__}."
        )
    beams = model.config.num_beams
    device = next(model.parameters()).device
    turns = torch.arange(0, beams, every)
    views = PaperViews("zeros").render(
        image[None].expand(len(turns), -1, -1, -1).to(device), turns * (TURN / beams)
    )
    batches = []
    for start in range(0, len(views), BATCH):
        samples = model.beams(views[start : start + BATCH])  # (N, |B|, C, 2ε+1, D)
        batches.append(samples.flatten(2) if pixels else model.encoder(samples))
    points = torch.cat(batches).flatten(0, 1).cpu().numpy()
    # A turn by k steps rolls the beams by +k: beam i sees what beam i − k saw.
    rotations = turns.repeat_interleave(beams).numpy()
    beam_numbers = np.tile(np.arange(beams), len(turns))
    return Orbit(points, rotations, (beam_numbers - rotations) % beams)


# --- is it a circle? ---


def drawn(cloud: Orbit, seed: int) -> NDArray[np.float32]:
    """(|B|, L): one point for each direction, in order, from random rotations."""
    permutation = np.random.default_rng(seed).permutation(len(cloud.points))
    _, first = np.unique(cloud.directions[permutation], return_index=True)
    return cloud.points[permutation[first]]


def coordinate(points: NDArray[np.float32]) -> float:
    """The error, in degrees, of a circular coordinate at every second direction.

    It is fitted to the other directions by ridge regression of cosine and sine on the points, so it
    succeeds only if the points go around a loop in the space of embeddings. Chance is 90°.
    """
    angles = np.arange(len(points)) * TURN / len(points)
    centred = np.asarray(points, dtype=np.float64)
    centred = centred - centred.mean(0)
    inner = centred @ centred.T / np.square(centred).sum(1).mean()
    train = np.arange(len(points)) % 2 == 0
    target = np.stack((np.cos(angles), np.sin(angles)), axis=1)[train]
    weights = np.linalg.solve(inner[np.ix_(train, train)] + RIDGE * np.eye(len(target)), target)
    predicted = inner[np.ix_(~train, train)] @ weights
    errors = np.arctan2(predicted[:, 1], predicted[:, 0]) - angles[~train]
    return float(np.degrees(np.abs((errors + np.pi) % TURN - np.pi)).mean())


MEASURES = {"circle": one_circle, "order": order, "coordinate": coordinate}


def measures(cloud: Orbit, draws: int) -> dict[str, float]:
    """All measures by name, averaged over draws of the rotations."""
    values = [
        {name: measure(points) for name, measure in MEASURES.items()}
        for points in (drawn(cloud, seed) for seed in range(draws))
    ]
    return {name: float(np.mean([draw[name] for draw in values])) for name in MEASURES}


# --- the layout ---


def layout(cloud: Orbit) -> list[list[int]]:
    """t-SNE of all points: x and y as integers from 0 to 1,000."""
    from sklearn.manifold import TSNE as Embedding

    tsne = Embedding(n_components=2, random_state=0, n_jobs=1, **TSNE)
    points = tsne.fit_transform(cloud.points)
    points = points - points.min(0)
    return [column.tolist() for column in np.rint(GRID * points / points.max()).astype(int).T]


# --- the experiment ---


def recipe(data: str, seed: int, settings: ReproduceSettings) -> Recipe:
    size = settings.pick(quick=64, full=DATA[data])
    return Recipe(
        data,
        paper.network("paper", size, settings, num_beams=BEAMS),
        size,
        group="cyclic",
        seed=seed,
        **paper.effort(settings, quick_steps=150, quick_rate=1e-3),
    )


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    return [
        PlannedTraining(
            f"{data}-seed{seed}",
            recipe(data, seed, settings),
            {"data": data},
            images=settings.pick(quick=600, full=None),
            held_out=settings.pick(quick=100, full=None),
            keep=True,
        )
        for data in DATA
        for seed in settings.seeds_of(quick=1, full=3)
    ]


def run(settings: ReproduceSettings, records: Records) -> Finding:
    if find_spec("sklearn") is None:  # fail now, not after the orbits
        raise ValueError(
            "The layouts need scikit-learn (t-SNE), which is not installed. Install it in "
            f"your clone with: {install_command('experiments')}"
        )
    planned = trainings(settings)
    count = settings.pick(quick=2, full=12)
    rows, layouts = [], []
    for number, training in enumerate(planned):
        settings.show(number, len(planned), f"orbits of {training.name}")
        network = load_trained(training, settings, NAME)
        images = load(
            training.recipe.data,
            root=settings.data,
            split="test",
            size=training.recipe.parent_size,
            limit=count,
        ).images
        rows += measure(training, network, images, settings)
        if training.recipe.seed == 0:
            layouts += layouts_of(training, network, images, settings)
    error = {
        data: spread([r.errors("cyclic")["mean"] for r in records.values() if _trained_on(r, data)])
        for data in DATA
    }
    data: JsonDict = {
        "beams": BEAMS,
        "samples": count,
        "table": table(rows),
        "error": error,
        "layouts": layouts,
    }
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def conclude(data: Record) -> Conclusion:
    return numbers(data), sentence(data["table"])


def _trained_on(record: TrainingRecord, data: str) -> bool:
    return bool(record.tags["data"] == data)


def _untrained(training: PlannedTraining, device: torch.device) -> Network:
    """The network before its first step."""
    torch.manual_seed(training.recipe.seed)
    return build(training.recipe.model).to(device).eval()


def measure(
    training: PlannedTraining, network: Network, images: Tensor, settings: ReproduceSettings
) -> list[JsonDict]:
    """A row for each image and kind; only the first seed has pixels, which no seed changes."""
    every = settings.pick(quick=3, full=1)
    draws = settings.pick(quick=1, full=3)
    initial = _untrained(training, next(network.parameters()).device)
    rows = []
    for number, image in enumerate(images):
        orbits = {"trained": orbit(network, image, every)}
        orbits["untrained"] = orbit(initial, image, every)
        orbits["shuffled"] = orbits["trained"].shuffled(number)
        if training.recipe.seed == 0:
            orbits["pixels"] = orbit(network, image, every, pixels=True)
        rows += [
            {
                "data": training.recipe.data,
                "image": number,
                "kind": kind,
                **measures(cloud, draws),
            }
            for kind, cloud in orbits.items()
        ]
    return rows


def table(rows: Sequence[Record]) -> list[JsonDict]:
    """Statistics over images; the value of an image is the mean over its seeds."""
    cells = []
    for data in DATA:
        for kind in KINDS:
            kind_rows = [row for row in rows if (row["data"], row["kind"]) == (data, kind)]
            cell: JsonDict = {"data": data, "kind": kind}
            for name in MEASURES:
                by_image = {
                    image: [row[name] for row in kind_rows if row["image"] == image]
                    for image in sorted({row["image"] for row in kind_rows})
                }
                values = [float(f"{np.mean(part):.4g}") for part in by_image.values()]
                cell[name] = spread(values)
            cells.append(cell)
    return cells


def layouts_of(
    training: PlannedTraining, network: Network, images: Tensor, settings: ReproduceSettings
) -> list[JsonDict]:
    """Layouts of a few images, and of the first before training; pictures only of objects."""
    every = settings.pick(quick=3, full=1)
    initial = _untrained(training, next(network.parameters()).device)
    chosen = np.linspace(0, len(images) - 1, settings.pick(quick=1, full=3)).astype(int)
    jobs = [(network, "trained", index) for index in chosen] + [(initial, "untrained", chosen[0])]
    layouts = []
    for number, (model, kind, index) in enumerate(jobs):
        settings.show(number, len(jobs), f"t-SNE, {training.recipe.data}, {kind}")
        cloud = orbit(model, images[int(index)], every)
        entry = {"data": training.recipe.data, "kind": kind, "image": int(index)}
        entry |= {"places": layout(cloud), "directions": cloud.directions.tolist()}
        if training.recipe.data == "coil100":
            entry["picture"] = _small(images[int(index)])
        layouts.append(entry)
    return layouts


def _small(image: Tensor) -> str:
    from PIL import Image

    picture = Image.fromarray(image.permute(1, 2, 0).numpy())
    return encode(
        np.asarray(picture.resize((THUMBNAIL_SIZE, THUMBNAIL_SIZE), Image.Resampling.LANCZOS))
    )


def find(cells: Sequence[Record], data: str, kind: str) -> Record:
    return next(cell for cell in cells if (cell["data"], cell["kind"]) == (data, kind))


def numbers(data: Record) -> JsonDict:
    ours: JsonDict = {}
    for cell in data["table"]:
        setting = f"{TITLES[cell['data']]}, {cell['kind']}"
        circle, near, fit = (cell[name] for name in MEASURES)
        ours[f"one-circle score (at most 0.94), {setting}"] = (
            f"{circle['mean']:.2f} ± {circle['std']:.2f}"
        )
        ours[f"error of a circular coordinate at held-out directions, {setting}"] = (
            f"{fit['mean']:.0f}° ± {fit['std']:.0f}°"
        )
        ours[f"nearest neighbour is the adjacent direction, {setting}"] = f"{near['mean']:.0%}"
    for name, error in data["error"].items():
        ours[f"mean error on C_B, {TITLES[name]}"] = f"{error['mean']:.1f}° ± {error['std']:.1f}°"
    return ours


def sentence(cells: Sequence[Record]) -> str:
    """Whether the orbit is a circle, and whether the circle is learned, in words."""
    sentences = []
    for data, title in TITLES.items():
        trained, untrained, pixels, shuffled = (find(cells, data, kind) for kind in KINDS)
        circle, chance = trained["circle"], shuffled["circle"]
        if circle["mean"] >= CIRCLE:
            meaning = "one circle"
        elif compare(circle, chance) > 0:
            meaning = "not a circle, only traces of a loop"
        else:
            meaning = "not a circle"
        fits = {
            name: cell["coordinate"]
            for name, cell in (("before training", untrained), ("from the beams' pixels", pixels))
        }
        better = [name for name, fit in fits.items() if compare(trained["coordinate"], fit) < 0]
        others = ", ".join(f"{fit['mean']:.0f}° {name}" for name, fit in fits.items())
        cause = (
            f"better than {' and '.join(better)}" if better else "no better than without learning"
        )
        sentences.append(
            f"By persistent homology, the orbit on {title} is {meaning}: it scores "
            f"{circle['mean']:.2f} of at most 0.94, and shuffled points score "
            f"{chance['mean']:.2f}. A circular coordinate that is fitted to the embeddings has an "
            f"error of {trained['coordinate']['mean']:.0f}°, {cause} ({others})."
        )
    return " ".join(sentences)


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import orbit_figures  # it needs matplotlib

    return orbit_figures.draw(record)


EXPERIMENT = Experiment(
    name=NAME,
    claim=(
        "If the network is trained on C_B without the prior, the beam embeddings of an image over "
        "its orbit form a continuous structure, topologically a circle"
    ),
    paper={
        "one-circle score (at most 0.94), COIL-100, trained": "shown only",
        "one-circle score (at most 0.94), LFW, trained": "shown only",
    },
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
