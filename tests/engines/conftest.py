"""Pictures for the engines, and an object store on this machine. Needs the `ray` extra."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from PIL import Image

from radialbeams.batch import JobSettings, Plan, journaled
from radialbeams.demo import PICTURES

JOB = JobSettings("ring.lfw", turns=True, writes=True, min_confidence=0.3)


@pytest.fixture(scope="session")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty turned faces in two folders, and a file that is no image."""
    folder = tmp_path_factory.mktemp("engines") / "faces"
    with Image.open(PICTURES / "astronaut.webp") as picture:
        upright = picture.convert("RGB").resize((160, 160), Image.Resampling.LANCZOS)
    for number in range(40):
        place = folder / f"{number % 2}" / f"{number}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        upright.rotate(9 * number, Image.Resampling.BICUBIC).save(place, quality=95)
    (folder / "1" / "broken.jpg").write_bytes(b"no image")
    return folder


@pytest.fixture(scope="session")
def plain(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the plain batch makes of the faces."""
    out = tmp_path_factory.mktemp("plain") / "out"
    with journaled(JOB, Plan((str(faces),), folder=out), 1) as run:
        list(run.outcomes)
    return out


@pytest.fixture
def bucket() -> Iterator[str]:
    """The address of a bucket in a server that speaks S3."""
    server = pytest.importorskip("moto.server", reason="run `make test-ray`").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    server.start()
    host, port = server.get_host_and_port()
    account = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    with mock.patch.dict(os.environ, account):
        import boto3
        import fsspec

        fsspec.filesystem("s3").clear_instance_cache()  # of an earlier server
        boto3.client("s3").create_bucket(Bucket="pictures")
        yield "s3://pictures"
    server.stop()


def contents(folder: Path) -> dict[str, bytes]:
    """The outputs below a folder, without the records of the run."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] not in RECORDS
    }


RECORDS = (".radialbeams-ray", ".radialbeams-ray.lock", ".radialbeams-run", "_report")
