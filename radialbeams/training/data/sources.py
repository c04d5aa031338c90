"""The known data sets: source, licence, layout and reader of each.

A reader takes the names of the files in a folder or archive. It returns one member per image, with
the key that decides the split and a group, or none if the files are something else.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams.training.data import cifar, siscore
from radialbeams.training.data.archives import Names, folder_name, read_file, without_top
from radialbeams.training.data.members import IMAGES, Member, Reader, matches

FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
           "Bag", "Ankle boot")  # fmt: skip
IMAGENET = 1000  # classes
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True)
class DataSource:
    """A data set that can be loaded by name."""

    official: str
    licence: str
    layout: str
    size: int
    places: tuple[str, ...]  # globs for its folder, or for the archive of that folder
    read: Reader
    installed: tuple[str, ...] = ()  # where a system package puts it
    objects_known: bool = False  # whether a split can hold out whole objects


# Data sets of image files.


def read_folder(place: Path, names: Names) -> list[Member]:
    """Any folder of images: the key is the file's stem, the group its folder."""
    images = {path: name for path, name in names.items() if re.search(rf"\.{IMAGES}$", path)}
    # `photos.zip` with everything in `photos/` is the folder `photos`.
    top = f"{folder_name(place)}/"
    if place.is_file() and all(path.startswith(top) for path in images):
        images = without_top(images)
    paths = ((PurePosixPath(path), name) for path, name in images.items())
    return [Member(name, p.stem, p.parent.as_posix() if p.parent.name else "") for p, name in paths]


def _coil100(place: Path, names: Names) -> list[Member]:
    members: dict[str, Member] = {}
    for m, path in matches(r"((obj(?:[1-9][0-9]?|100))__[0-9]+)\.(?:png|webp)", names):
        members.setdefault(m[1], Member(path, m[1], m[2]))  # .png or .webp, not both
    return list(members.values())


def _lfw(place: Path, names: Names) -> list[Member]:
    return [Member(path, m[1], m[1]) for m, path in matches(r"([^/]+)/\1_[0-9]+\.jpg", names)]


def _photos(place: Path, names: Names) -> list[Member]:
    photos = matches(rf"(train|test)/([^/]+)/(?:.+/)?([^/]+)\.{IMAGES}", names)
    return [Member(path, m[3], m[2], held_out=m[1] == "test") for m, path in photos]


def _imagenet_samples(place: Path, names: Names) -> list[Member]:
    """Files named by class index, or by WordNet id, whose sorted order gives the index."""
    photos = matches(r"(?:([0-9]{4})_)?(n[0-9]{8})_[^/]+\.(?i:jpe?g)", names)
    order = sorted({m[2] for m, _ in photos})
    if len(order) < IMAGENET and any(m[1] is None for m, _ in photos):
        return []  # the indices cannot be known if classes are missing
    return [Member(path, m[2], m[1] or f"{order.index(m[2]):04d}") for m, path in photos]


# Data sets of files that contain many images.


def _fashion_mnist(place: Path, names: Names) -> list[Member]:
    members = []
    for m, path in matches(r"(train|t10k)-images-idx3-ubyte(\.gz)?", names):
        images = _idx(read_file(place, path), 3, path)
        groups = [""] * len(images)
        for _, labels in matches(rf"{m[1]}-labels-idx1-ubyte(\.gz)?", names)[:1]:
            groups = _classes(_idx(read_file(place, labels), 1, labels), FASHION)
        part = "train" if m[1] == "train" else "test"
        members += _from_arrays(path, part, images, groups)
    return members


def _idx(data: bytes, dimensions: int, path: str) -> NDArray[np.uint8]:
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    head = 4 + 4 * dimensions
    shape = tuple(int(n) for n in np.frombuffer(data[4 : len(data[:head]) // 4 * 4], ">u4"))
    if data[:4] != bytes([0, 0, 8, dimensions]) or len(data) - head != np.prod(shape):
        raise ValueError(
            f"Expected an idx file of bytes with {dimensions} dimensions; "
            f"got {path} of {len(data)} bytes. Download it again."
        )
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


def _cifar10(place: Path, names: Names) -> list[Member]:
    members = []
    for m, path in matches(r"(data_batch_[1-5]|test_batch)(\.bin)?", names):
        read = _cifar_binary if m[2] else _cifar_pickle
        pixels, labels = read(read_file(place, path), path)
        images = pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        members += _from_arrays(path, m[1], images, _classes(labels, CIFAR))
    photos = matches(rf"(train|test)/({'|'.join(CIFAR)})/([^/]+)\.{IMAGES}", names)
    return members or [Member(path, "-".join(m.groups()), m[2]) for m, path in photos]


def _cifar_binary(data: bytes, path: str) -> tuple[NDArray[np.uint8], list[int]]:
    if len(data) % 3073:
        raise ValueError(
            f"Expected records of 3073 bytes; got {path} of {len(data)} bytes. Download it again."
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, 3073)
    return records[:, 1:], records[:, 0].tolist()


def _cifar_pickle(data: bytes, path: str) -> tuple[NDArray[np.uint8], list[int]]:
    try:
        return cifar.read_batch(data)
    except cifar.NotABatch as error:
        raise ValueError(
            f"Expected a batch of CIFAR-10; got {path}, refused: {error}. "
            f"Get it from {SOURCES['cifar10'].official}."
        ) from error


def _classes(labels: Iterable[int], names: Sequence[str]) -> list[str]:
    return [names[n] if 0 <= n < len(names) else "" for n in labels]


def _from_arrays(
    path: str, part: str, images: NDArray[np.uint8], groups: Sequence[str]
) -> list[Member]:
    if len(images) != len(groups):
        raise ValueError(
            f"Expected as many labels as images; got {len(groups)} and {len(images)} in {path}. "
            "Download it again."
        )
    rows = enumerate(zip(images, groups, strict=True))
    return [Member(path, f"{part}-{i}", g, partial(Image.fromarray, x)) for i, (x, g) in rows]


SOURCES = {
    "coil100": DataSource(
        official="https://cave.cs.columbia.edu/repository/COIL-100",
        licence="research use",
        layout="coil-100/obj{1..100}__{0,5,..,355}.png (or .webp), folder or archive",
        size=128,
        places=("coil-100*", "coil100*"),
        read=_coil100,
        objects_known=True,
    ),
    "lfw": DataSource(
        official="http://vis-www.cs.umass.edu/lfw/",
        licence="photos of real people, research use",
        layout="lfw/Name/Name_0001.jpg, folder or archive",
        size=250,
        places=("lfw*",),
        read=_lfw,
    ),
    "photos": DataSource(
        official="the sets named in tools/photos/README.md, by its prepare.py",
        licence="photos by many people, research use",
        layout="photos/{train,test}/SOURCE/*.webp, folder or archive",
        size=176,
        places=("photos*",),
        read=_photos,
    ),
    "coco": DataSource(
        official="https://cocodataset.org, train2017",
        licence="each photo under its own Flickr licence",
        layout="coco/*.jpg, folder or archive; key: the photo's number",
        size=192,
        places=("coco*", "train2017*"),
        read=read_folder,
    ),
    "fashion-mnist": DataSource(
        official="https://github.com/zalandoresearch/fashion-mnist",
        licence="MIT",
        layout="fashion-mnist/{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz], folder or archive",
        size=28,
        places=("fashion-mnist*", "fashion_mnist*", "FashionMNIST*"),
        read=_fashion_mnist,
        installed=("/usr/share/datasets/fashion-mnist",),  # Debian's dataset-fashion-mnist
    ),
    "cifar10": DataSource(
        official="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="no licence stated, research use",
        layout="cifar-10-binary.tar.gz, cifar-10-python.tar.gz, or what is in them:"
        " data_batch_1.bin (or data_batch_1), …, or train/CLASS/*.jpg",
        size=32,
        places=("cifar-10*", "cifar10*", "CIFAR-10*", "CIFAR10*"),
        read=_cifar10,
    ),
    "imagenet-samples": DataSource(
        official="https://www.image-net.org (one photo of each class)",
        licence="photos by many people, research use",
        layout="imagenet-1000-samples/NNNN_WNID_NAME.jpg with NNNN the index of the class, or"
        " WNID_NAME.JPEG of all 1,000 classes; folder or archive",
        size=256,
        places=("imagenet-1000-samples*", "imagenet-sample*"),
        read=_imagenet_samples,
    ),
    "si-score": DataSource(
        official="https://github.com/google-research/si-score",
        licence="Apache-2.0",
        layout="rotation/CLASS/NUMBER.jpg with rotation/metadata.csv, or the samples"
        " foreground_samples/CLASS/*.png and background_samples/*, folder or archive",
        size=512,
        places=("si-score*", "object_rotation*", "rotation*"),
        read=siscore.read,
    ),
    "si-score-rotation": DataSource(
        official="https://github.com/google-research/si-score",
        licence="Apache-2.0",
        layout="si-score; made from the samples as the benchmark makes its images where the"
        " full set, rotation/CLASS/NUMBER.jpg with rotation/metadata.csv, is not there",
        size=512,
        places=("si-score*", "object_rotation*", "rotation*"),
        read=siscore.read_turned,
        objects_known=True,
    ),
    "imagenet-cutouts": DataSource(
        official="`python tools/cutouts.py`, from the ImageNet samples",
        licence="research only, as ImageNet",
        layout="foreground_samples/CLASS/*.png, background_samples/* and foreground_classes.csv,"
        " folder or archive",
        size=512,
        places=("imagenet-cutouts*",),
        read=siscore.read_cutouts,
        objects_known=True,
    ),
}
