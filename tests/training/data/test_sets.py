"""Data sets: the same images, keys and split from a folder, an archive, a subset or the whole."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from radialbeams.training.data import SOURCES, DataNotFound, ImageSet, in_test, load
from radialbeams.training.data.sets import _locate

Files = dict[str, bytes]
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def no_data_around(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "real" not in request.fixturenames:
        monkeypatch.delenv("RADIALBEAMS_DATA", raising=False)


def encode(image: Image.Image | np.ndarray, kind: str = "png", **options: object) -> bytes:
    image = Image.fromarray(image) if isinstance(image, np.ndarray) else image
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def noise(*shape: int) -> np.ndarray:
    return rng.integers(0, 256, shape, np.uint8)


def as_folder(top: Path, files: Files) -> Path:
    for path, data in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(data)
    return top


def as_zip(top: Path, files: Files) -> Path:
    top.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(top, "w") as archive:
        for path, data in reversed(files.items()):  # stored order is not the order of the set
            archive.writestr(path, data)
    return top


def as_tar(top: Path, files: Files) -> Path:
    top.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(top, "w:gz" if top.name.endswith("gz") else "w") as archive:
        for path, data in reversed(files.items()):
            info = tarfile.TarInfo(f"./{path}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return top


def assert_same(a: ImageSet, b: ImageSet) -> None:
    assert a.keys == b.keys
    assert a.groups == b.groups
    assert torch.equal(a.images, b.images)


# The split.


def test_split_of_known_keys() -> None:
    test = {key for key in KNOWN if in_test(key)}
    assert test == {key for key, held_out in KNOWN.items() if held_out}


KNOWN = {
    "obj1__0": False,
    "obj1__5": False,
    "obj1__10": True,
    "obj7__45": False,
    "obj10__0": False,
    "obj100__355": False,
    "obj81__0": True,
    "obj2__90": False,
    "obj3__15": True,
    "Aaron_Eckhart": False,
    "AJ_Cook": True,
    "Abdul_Rahman": True,
    "Abdoulaye_Wade": True,
    "Zydrunas_Ilgauskas": False,
    "George_W_Bush": False,
    "train-0": False,
    "train-17": True,
    "test-17": False,
    "data_batch_1-17": True,
    "test_batch-0": False,
}


def test_a_fifth_is_test() -> None:
    assert 0.19 < np.mean([in_test(f"key{i}") for i in range(10_000)]) < 0.21


def test_split_of_a_name_that_is_no_utf8() -> None:
    assert in_test("\udcff") in (True, False)


# COIL-100.


def coil(kind: str = "png") -> Files:
    keys = [(obj, angle) for obj in (1, 2, 10, 80, 81, 100) for angle in (0, 5, 10, 100)]
    return {
        f"coil-100/obj{obj}__{angle}.{kind}": encode(
            np.full((128, 128, 3), (obj, angle, 7), np.uint8),
            kind,
            **({"lossless": True} if kind == "webp" else {}),
        )
        for obj, angle in keys
    }


def test_coil_is_the_same_from_every_place(tmp_path: Path) -> None:
    folder = load("coil100", root=as_folder(tmp_path / "a", coil()))
    assert folder.images.shape == (24, 3, 128, 128)
    assert folder.images.dtype == torch.uint8
    assert folder.keys[:5] == ("obj1__0", "obj1__5", "obj1__10", "obj1__100", "obj2__0")
    assert folder.groups[::4] == ("obj1", "obj2", "obj10", "obj80", "obj81", "obj100")
    assert folder.images[9, :, 0, 0].tolist() == [10, 5, 7]
    itself = load("coil100", root=tmp_path / "a" / "coil-100")
    as_zip(tmp_path / "b" / "coil-100.zip", coil("webp"))
    as_tar(tmp_path / "c" / "coil-100.tar.gz", coil())
    flat = {path.partition("/")[2]: data for path, data in coil().items()}
    as_tar(tmp_path / "d" / "coil100.tar", flat)
    archives = [load("coil100", root=tmp_path / name) for name in "bcd"]
    direct = load("coil100", root=tmp_path / "b" / "coil-100.zip")
    for other in (itself, *archives, direct):
        assert_same(folder, other)


def test_coil_splits(tmp_path: Path) -> None:
    root = as_zip(tmp_path / "coil-100.zip", coil()).parent
    train, test = (load("coil100", root=root, split=split) for split in ("train", "test"))
    assert set(test.keys) == {key for key in (*train.keys, *test.keys) if in_test(key)}
    assert len(train) + len(test) == 24
    objects = load("coil100", root=root, split="test", split_by="object")
    assert set(objects.groups) == {"obj81", "obj100"}
    rest = load("coil100", root=root, split="train", split_by="object")
    assert set(rest.groups) == {"obj1", "obj2", "obj10", "obj80"}


def test_only_the_split_is_decoded(tmp_path: Path) -> None:
    files = {p: d if in_test(Path(p).stem) else b"broken" for p, d in coil().items()}
    test = load("coil100", root=as_folder(tmp_path, files), split="test")  # no warning
    assert 0 < len(test) < 24


def test_folder_before_archive_and_png_before_webp(tmp_path: Path) -> None:
    as_zip(tmp_path / "coil-100.zip", {"coil-100/obj1__0.png": encode(noise(128, 128, 3))})
    as_folder(tmp_path, coil() | coil("webp"))
    assert len(load("coil100", root=tmp_path)) == 24


def test_limit_is_evenly_spaced(tmp_path: Path) -> None:
    few = load("coil100", root=as_folder(tmp_path, coil()), limit=6)
    assert few.keys == tuple(f"obj{n}__0" for n in (1, 2, 10, 80, 81, 100))


def test_select(tmp_path: Path) -> None:
    every = load("coil100", root=as_folder(tmp_path, coil()))
    some = every.select([5, 2])
    assert some.keys == (every.keys[5], every.keys[2])
    assert torch.equal(some.images[1], every.images[2])
    assert len(some) == 2


# LFW, Fashion-MNIST, CIFAR-10, SI-SCORE.


def test_lfw(tmp_path: Path) -> None:
    people = {"Aaron_Eckhart": 1, "Al_Gore": 3, "Zoe_Ball": 2}
    files = {
        f"lfw/{name}/{name}_{i + 1:04}.jpg": encode(noise(250, 250, 3), "jpeg")
        for name, count in people.items()
        for i in range(count)
    }
    folder = load("lfw", root=as_folder(tmp_path / "a", files))
    assert folder.keys == folder.groups == ("Aaron_Eckhart", *["Al_Gore"] * 3, *["Zoe_Ball"] * 2)
    assert folder.images.shape == (6, 3, 250, 250)
    as_tar(tmp_path / "b" / "lfw.tgz", files)
    as_zip(tmp_path / "b" / "lfw-part.zip", dict(list(files.items())[:1]))
    assert_same(folder, load("lfw", root=tmp_path / "b"))


def test_path_of_a_known_set_is_that_set(tmp_path: Path) -> None:
    people = [f"Person_{i}" for i in range(12)]
    files = {
        f"{name}/{name}_{i:04}.jpg": encode(noise(250, 250, 3), "jpeg")
        for name in people
        for i in range(1, 4)
    }
    nested = {f"lfw/{path}": data for path, data in files.items()}
    named = load("lfw", root=as_folder(tmp_path / "named", nested))
    for place in (
        as_folder(tmp_path / "lfw", files),
        as_folder(tmp_path / "lfw-deepfunneled", nested),
        as_zip(tmp_path / "lfw-4000.zip", nested),
        as_tar(tmp_path / "a" / "lfw.tar.gz", files),
    ):
        given = load(place)
        assert_same(named, given)
        assert given.name == "lfw"
        train, test = (load(str(place), split=split) for split in ("train", "test"))
        assert not set(train.groups) & set(test.groups)
        assert len(train) + len(test) == 36


def test_path_of_a_known_set_from_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(as_folder(tmp_path, coil()) / "coil-100")
    assert_same(load("."), load("coil100", root=tmp_path))


def test_path_to_coil_knows_its_objects(tmp_path: Path) -> None:
    as_zip(tmp_path / "coil-100.zip", coil())
    objects = load(tmp_path / "coil-100.zip", split="test", split_by="object")
    assert set(objects.groups) == {"obj81", "obj100"}
    assert objects.images.shape[-1] == 128


def test_path_with_a_known_name_and_other_images_is_a_folder(tmp_path: Path) -> None:
    files = {f"cats/{n}.jpg": encode(noise(8, 8, 3), "jpeg") for n in "ab"}
    images = load(as_folder(tmp_path / "lfw", files), size=8)
    assert (images.keys, images.groups) == (("a", "b"), ("cats", "cats"))
    assert images.name == str(tmp_path / "lfw")


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


def test_fashion_mnist(tmp_path: Path) -> None:
    train, test = noise(5, 28, 28), noise(2, 28, 28)
    files = {
        "train-images-idx3-ubyte": idx(train),
        "train-labels-idx1-ubyte": idx(np.array([0, 1, 2, 8, 9], np.uint8)),
        "t10k-images-idx3-ubyte": idx(test),
        "t10k-labels-idx1-ubyte": idx(np.array([3, 4], np.uint8)),
    }
    zipped = {f"{path}.gz": gzip.compress(data) for path, data in files.items()}
    plain = load("fashion-mnist", root=as_folder(tmp_path / "a" / "fashion-mnist", files).parent)
    assert plain.keys == ("test-0", "test-1", *(f"train-{i}" for i in range(5)))
    assert plain.groups[:3] == ("Dress", "Coat", "T-shirt/top")
    assert torch.equal(plain.images[2:], torch.from_numpy(train)[:, None].expand(-1, 3, -1, -1))
    assert_same(plain, load("fashion-mnist", root=as_folder(tmp_path / "b", zipped)))
    as_zip(tmp_path / "c" / "fashion-mnist.zip", zipped)
    assert_same(plain, load("fashion-mnist", root=tmp_path / "c"))
    gray = load("fashion-mnist", root=tmp_path / "c", channels=1, split="train")
    assert gray.images.shape[1:] == (1, 28, 28)
    assert not any(map(in_test, gray.keys))


def test_broken_idx_is_refused(tmp_path: Path) -> None:
    for data in (b"", b"\0\0\x08\x03", idx(noise(5, 28, 28))[:-1], idx(noise(5, 28))):
        as_folder(tmp_path, {"train-images-idx3-ubyte": data})
        with pytest.raises(ValueError, match="Expected an idx file of bytes with 3 dimensions"):
            load("fashion-mnist", root=tmp_path)


def test_labels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    images, labels = idx(noise(5, 28, 28)), idx(np.zeros(4, np.uint8))
    as_folder(tmp_path, {"train-images-idx3-ubyte": images, "train-labels-idx1-ubyte": labels})
    with pytest.raises(ValueError, match="as many labels as images; got 4 and 5 in train-images"):
        load("fashion-mnist", root=tmp_path)


def python2_pickle(pixels: np.ndarray, labels: list[int]) -> bytes:
    """Opcode by opcode as Python 2 wrote the official batches."""
    rows = b"".join(b"K" + bytes([label]) for label in labels)
    minus_one = b"J\xff\xff\xff\xff"
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN" + 2 * minus_one + b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
    array += b"M" + struct.pack("<H", len(labels)) + b"M\x00\x0c\x86" + dtype + b"\x89"
    array += b"T" + struct.pack("<I", pixels.nbytes) + pixels.tobytes() + b"tb"
    return b"\x80\x02}(U\x06labels](" + rows + b"eU\x04data" + array + b"u."


def test_cifar_binary_and_pickle_agree(tmp_path: Path) -> None:
    pixels, labels = noise(4, 3072), [0, 9, 3, 3]
    records = np.column_stack([np.array(labels, np.uint8), pixels]).tobytes()
    binary = {f"cifar-10-batches-bin/{b}.bin": records for b in ("data_batch_1", "test_batch")}
    pickled = {
        f"cifar-10-batches-py/{b}": python2_pickle(pixels, labels)
        for b in ("data_batch_1", "test_batch")
    }
    folder = load("cifar10", root=as_folder(tmp_path / "a", binary))
    assert folder.keys[3:5] == ("data_batch_1-3", "test_batch-0")
    assert folder.groups[:4] == ("airplane", "truck", "cat", "cat")
    assert torch.equal(folder.images[:4], torch.from_numpy(pixels.reshape(4, 3, 32, 32)))
    as_tar(tmp_path / "b" / "cifar-10-binary.tar.gz", binary)
    as_tar(tmp_path / "c" / "cifar-10-python.tar.gz", pickled)
    as_folder(tmp_path / "d", pickled)
    for name in "bcd":
        assert_same(folder, load("cifar10", root=tmp_path / name))


def test_cifar_as_jpegs(tmp_path: Path) -> None:
    files = {f"CIFAR-10-images/{p}.jpg": encode(noise(32, 32, 3), "jpeg")
             for p in ("train/cat/0001", "test/cat/0001", "train/dog/0002")}  # fmt: skip
    images = load("cifar10", root=as_folder(tmp_path, files))
    assert images.keys == ("test-cat-0001", "train-cat-0001", "train-dog-0002")
    assert images.groups == ("cat", "cat", "dog")


class Malicious:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch pwned",)


@pytest.mark.parametrize("name", ["os.system", "builtins.eval"])
def test_malicious_pickle_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evil = b'cbuiltins\neval\n(S\'open("pwned", "w")\'\ntR.'
    data = pickle.dumps(Malicious(), 2) if name == "os.system" else evil
    as_folder(tmp_path / "cifar10", {"data_batch_1": data})
    with pytest.raises(
        ValueError, match=r"Expected a batch of CIFAR-10; .*refers to \w+\.\w+\. Get"
    ):
        load("cifar10", root=tmp_path)
    assert not (tmp_path / "pwned").exists()


def test_broken_cifar_is_refused(tmp_path: Path) -> None:
    as_folder(tmp_path / "a", {"data_batch_1.bin": b"x" * 3074})
    with pytest.raises(ValueError, match=r"Expected records of 3073 bytes; got data_batch_1\.bin"):
        load("cifar10", root=tmp_path / "a")
    as_folder(tmp_path / "b", {"data_batch_1": python2_pickle(noise(2, 3072), [1, 2])[:-50]})
    with pytest.raises(ValueError, match="a batch of CIFAR-10; got data_batch_1, refused"):
        load("cifar10", root=tmp_path / "b")


def test_si_score_samples_are_composed_upright(tmp_path: Path) -> None:
    cutout = np.zeros((100, 50, 4), np.uint8)
    cutout[:50] = (255, 0, 0, 255)
    cutout[50:] = (0, 255, 0, 255)
    files = {
        "si-score/foreground_samples/vase/vase1.png": encode(cutout),
        "si-score/background_samples/sky.jpg": encode(np.full((60, 90, 3), 200, np.uint8), "jpeg"),
        "si-score/background_samples/sea.jpg": encode(np.full((60, 90, 3), 100, np.uint8), "jpeg"),
    }
    images = load("si-score", root=as_zip(tmp_path / "si-score.zip", files).parent)
    assert images.keys == ("vase1-sea", "vase1-sky")
    assert images.groups == ("vase", "vase")
    assert images.images.shape == (2, 3, 512, 512)
    assert images.images[0, :, 256 - 60, 256].tolist() == [255, 0, 0]
    assert images.images[0, :, 256 + 60, 256].tolist() == [0, 255, 0]
    red = images.images[0, 0, :, 256] > 177
    assert int(red.sum()) in (153, 154)  # half of 0.6 × 512
    assert images.images[1, :, 2, 2].tolist() == [200, 200, 200]
    assert images.angles_degrees is None


def test_si_score_rotation_knows_its_angles(tmp_path: Path) -> None:
    rows = "image_id,x_coord,y_coord,area,rotation\n7,.5,.5,.2,21\n12,.5,.5,.2,341\n"
    files = {f"rotation/bagel/{n}.jpg": encode(noise(512, 512, 3), "jpeg") for n in (12, 7)}
    files["rotation/metadata.csv"] = rows.encode()
    images = load("si-score", root=as_zip(tmp_path / "rotation.zip", files).parent, size=64)
    assert (images.keys, images.groups) == (("7", "12"), ("bagel", "bagel"))
    assert images.angles_degrees == (21.0, 341.0)
    assert images.select([1]).angles_degrees == (341.0,)


def test_imagenet_samples_know_their_class(tmp_path: Path) -> None:
    picture = encode(noise(30, 40, 3), "jpeg")
    files = {f"imagenet-1000-samples/{n}": picture for n in ("0007_n01514668_cock.jpg",)}
    images = load(
        "imagenet-samples", root=as_zip(tmp_path / "imagenet-1000-samples.zip", files).parent
    )
    assert (images.groups, images.keys) == (("0007",), ("n01514668",))
    assert images.images.shape == (1, 3, 256, 256)
    # Without the index in front only the whole set tells which class is which.
    (tmp_path / "imagenet-1000-samples.zip").unlink()
    as_zip(tmp_path / "imagenet-samples.zip", {"n01514668_cock.JPEG": picture})
    with pytest.raises(DataNotFound):
        load("imagenet-samples", root=tmp_path)


# Any folder of images.


def test_folder_and_archives_agree(tmp_path: Path) -> None:
    files = {
        "1.png": encode(noise(9, 9, 3)),
        "a/2.JPG": encode(noise(9, 9, 3), "jpeg"),
        "a/10.bmp": encode(noise(9, 9, 3), "bmp"),
        "a/b/3.tiff": encode(noise(9, 9, 3), "tiff"),
        "a/._2.jpg": b"resource fork",
        "notes.txt": b"no image",
    }
    folder = load(as_folder(tmp_path / "photos", files), size=9)
    assert folder.keys == ("1", "2", "10", "3")
    assert folder.groups == ("", "a", "a", "a/b")
    assert_same(folder, load(str(as_zip(tmp_path / "other.zip", files)), size=9))
    inside = {f"photos/{path}": data for path, data in files.items()}
    assert_same(folder, load(as_zip(tmp_path / "photos.zip", inside), size=9))
    assert_same(folder, load(as_tar(tmp_path / "photos.tar.gz", inside), size=9))


def test_default_size_square_and_antialiasing(tmp_path: Path) -> None:
    wide = np.zeros((512, 1024, 3), np.uint8)
    wide[:, 256:768] = (np.indices((512, 512)).sum(0) % 2 * 255)[..., None]
    images = load(as_folder(tmp_path, {"wide.png": encode(wide)})).images
    assert images.shape == (1, 3, 256, 256)
    inner = images[:, :, 4:-4, 4:-4].float()
    assert 120 < inner.min() <= inner.max() < 135  # a chequerboard becomes gray, not a moiré


def test_odd_formats(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: show it turned clockwise by 90°
    left_dark = np.zeros((16, 16, 3), np.uint8)
    left_dark[:, 8:] = 255
    palette = Image.new("P", (16, 16), 1)
    palette.putpalette([0, 0, 0, 250, 100, 50])
    sixteen = np.full((16, 16), 257 * 100, np.uint16)
    half = Image.new("RGBA", (16, 16), (200, 100, 50, 128))
    files = {
        "cmyk.jpg": encode(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "jpeg", quality=100),
        "exif.jpg": encode(left_dark, "jpeg", exif=exif, quality=100),
        "gray.png": encode(np.full((16, 16), 77, np.uint8)),
        "half.png": encode(half),
        "palette.png": encode(palette, transparency=1),
        "sixteen.png": encode(sixteen),
    }
    images = dict(zip(sorted(files), load(as_folder(tmp_path, files), size=16).images, strict=True))
    assert images["cmyk.jpg"][:, 8, 8].tolist() == pytest.approx([255, 0, 0], abs=3)
    assert images["exif.jpg"][0, 2].max() < 20 < 235 < images["exif.jpg"][0, -2].min()
    assert images["gray.png"].unique().tolist() == [77]
    assert images["half.png"][:, 0, 0].tolist() == pytest.approx([100, 50, 25], abs=1)
    assert images["palette.png"].max() == 0  # transparent shows black
    assert images["sixteen.png"].unique().tolist() == [100]


def test_luminance(tmp_path: Path) -> None:
    red = np.full((8, 8, 3), (255, 0, 0), np.uint8)
    image = load(as_folder(tmp_path, {"red.png": encode(red)}), size=8, channels=1).images
    assert image.shape == (1, 1, 8, 8)
    assert image.unique().tolist() == [76]  # 0.299 × 255


def damaged(top: Path) -> Path:
    whole = encode(noise(64, 64, 3))
    files = {"a.png": whole, "b.png": whole[: len(whole) // 2], "c.png": b"", "d.png": whole}
    return as_folder(top, files)


def test_unreadable_files_are_skipped_and_reported(tmp_path: Path) -> None:
    seen: dict[str, str] = {}
    images = load(damaged(tmp_path), size=64, on_skip=seen.__setitem__)
    assert images.keys == ("a", "d")
    assert torch.equal(images.images[0], images.images[1])
    assert list(seen) == ["b.png", "c.png"]
    assert "truncated" in seen["b.png"]
    with pytest.warns(UserWarning, match=r"Skipped 2 unreadable files .* b\.png: OSError"):
        load(tmp_path, size=64)


def test_damaged_member_of_a_zip_is_skipped(tmp_path: Path) -> None:
    files = {name: encode(noise(64, 64, 3)) for name in ("a.png", "b.png")}
    archive = as_zip(tmp_path / "x.zip", files)
    data = bytearray(archive.read_bytes())
    data[data.index(files["a.png"][:2000]) + 1000] ^= 255
    archive.write_bytes(data)
    seen: dict[str, str] = {}
    assert load(archive, size=64, on_skip=seen.__setitem__).keys == ("b",)
    assert "CRC" in seen["a.png"]


def test_a_name_twice_in_a_zip_is_one_image(tmp_path: Path) -> None:
    archive = as_zip(tmp_path / "x.zip", {"a.png": encode(noise(8, 8))})
    with zipfile.ZipFile(archive, "a") as again, pytest.warns(UserWarning, match="Duplicate"):
        again.writestr("a.png", encode(noise(8, 8)))
    assert load(archive, size=8).keys == ("a",)


def test_bomb_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_folder(tmp_path, {"big.png": encode(noise(40, 40)), "small.png": encode(noise(8, 8))})
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)  # 1600 pixels would be a warning
    seen: dict[str, str] = {}
    assert load(tmp_path, size=8, on_skip=seen.__setitem__).keys == ("small",)
    assert "DecompressionBomb" in seen["big.png"]


# Errors.


def test_nothing_readable(tmp_path: Path) -> None:
    as_folder(tmp_path, {"a.png": b"", "b.png": b""})
    with pytest.raises(ValueError, match="got 2 files, none readable") as error:
        load(tmp_path, on_skip=lambda path, reason: None)
    assert str(error.value).endswith("Check that the files are intact.")


def test_empty_folder_and_no_archive(tmp_path: Path) -> None:
    with pytest.raises(
        DataNotFound, match=r"which contains none\. Give a folder that contains some"
    ):
        load(tmp_path)
    as_folder(tmp_path, {"a.zip": b"nothing"})
    with pytest.raises(
        ValueError, match=r"Expected a folder, or a complete zip.*Download it again"
    ):
        load(tmp_path / "a.zip")


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(DataNotFound) as error:
        load("coil200")
    assert str(error.value) == (
        "Expected one of coil100, lfw, photos, coco, fashion-mnist, cifar10, "
        "imagenet-samples, si-score, "
        "si-score-rotation, imagenet-cutouts, or a path; got 'coil200',"
        " which is neither. Check the spelling, or give the path of a folder or archive of images."
    )


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {"fashion-mnist"}))
def test_missing_data_says_where_to_get_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataNotFound) as error:
        load(name, root=tmp_path)
    source = SOURCES[name]
    for part in (source.official, source.layout, source.licence, f"{tmp_path / source.places[0]}"):
        assert part in str(error.value)
    assert str(error.value).endswith("with --data DIR or RADIALBEAMS_DATA.")
    with pytest.raises(DataNotFound, match="; no folder was given"):
        load(name)


def test_environment_names_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIALBEAMS_DATA", str(as_folder(tmp_path, coil())))
    assert len(load("coil100", limit=2)) == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"split": "dev"}, "split to be one of 'train', 'test', 'all'; got 'dev'"),
        ({"split_by": "day"}, "split_by to be one of 'default', 'object'; got 'day'"),
        (
            {"split_by": "object"},
            "Expected one of coil100, si-score-rotation, imagenet-cutouts for split_by='object'; "
            "got",
        ),
        ({"channels": 4}, "channels to be one of 1, 3; got 4"),
        ({"size": 0}, "Expected size of at least 1; got 0"),
        ({"limit": 0}, "Expected limit of at least 1; got 0"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, object], text: str) -> None:
    as_folder(tmp_path, {"a.png": encode(noise(8, 8))})
    with pytest.raises(ValueError, match=text):
        load(tmp_path, **options)  # type: ignore[arg-type]


def test_empty_split(tmp_path: Path) -> None:
    as_folder(tmp_path, {"obj1__0.png": encode(noise(8, 8))})
    with pytest.raises(ValueError, match=r"images in the test split .* got 1 images, none .* Use"):
        load(tmp_path, split="test")


# The real data.


def test_real_coil(real: Callable[..., ImageSet]) -> None:
    test = real("coil100", split="test", limit=50)
    assert test.images.shape == (50, 3, 128, 128)
    assert all(map(in_test, test.keys))
    objects = real("coil100", split="test", split_by="object", limit=20)
    assert objects.groups == tuple(f"obj{n}" for n in range(81, 101))
    every = _locate("coil100", None).members  # all of it, undecoded
    assert len(every) == len({e.key for e in every}) == 7200
    assert len({e.group for e in every}) == 100
    assert sum(in_test(e.key) for e in every) == 1479


def test_real_lfw_people_are_disjoint(real: Callable[..., ImageSet]) -> None:
    train = real("lfw", split="train", limit=2000, size=8)
    test = real("lfw", split="test", limit=500, size=8)
    assert not set(train.groups) & set(test.groups)
    assert real("lfw", limit=3).images.shape == (3, 3, 250, 250)


def test_real_si_score(real: Callable[..., ImageSet]) -> None:
    images = real("si-score", size=32)
    assert len(images) == 72
    assert len(set(images.groups)) == 9


def test_real_fashion_mnist(real: Callable[..., ImageSet]) -> None:
    images = real("fashion-mnist", limit=100)
    assert images.images.shape == (100, 3, 28, 28)
    assert len(set(images.groups)) == 10


def test_images_that_are_already_turned_are_no_parents() -> None:
    images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    turned = ImageSet("si-score", images, ("a", "b"), ("", ""), (1.0, 21.0))
    with pytest.raises(ValueError, match="contains pre-rotated images"):
        turned.upright()
    upright = ImageSet("mine", images, ("a", "b"), ("", ""))
    assert upright.upright() is upright


def test_photos_come_with_their_own_split(tmp_path: Path) -> None:
    for name in ("train/coco/a", "train/lfw/Ann/Ann_0001", "test/coco/b"):
        file = tmp_path / "photos" / f"{name}.webp"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(file)
    train, test = (
        load("photos", root=tmp_path, split=split, size=8) for split in ("train", "test")
    )
    assert (train.keys, train.groups) == (("a", "Ann_0001"), ("coco", "lfw"))
    assert (test.keys, test.groups) == (("b",), ("coco",))
