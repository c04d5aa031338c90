"""The service as a process of its own, over HTTP."""

from __future__ import annotations

import base64
import io
import json
import re
import signal
import socket
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from probe.damage import damaged, png

from radialbeams import Canonicalizer, zoo
from radialbeams.serving import openapi
from radialbeams.serving.heat import heat

from .conftest import Running, form, start

Face = Callable[[float], bytes]


# --- answers ---


def test_the_answer_is_the_librarys(service: Running, rocket: bytes) -> None:
    found = service.ask("POST", "/v1/angle?posterior=true", rocket).json
    (expected,) = Canonicalizer().answers([rocket])
    assert found["angle_ccw"] == pytest.approx(expected.angle_degrees, abs=0.02)
    assert found["confidence"] == pytest.approx(expected.confidence, abs=1e-3)
    assert found["symmetry"] == expected.symmetry
    assert found["model"] == zoo.DEFAULT
    assert sum(found["posterior"]) == pytest.approx(1, abs=1e-3)


def test_a_model_can_be_chosen_and_the_angle_follows(service: Running, face: Face) -> None:
    for angle in (30, 200):
        found = service.ask("POST", "/v1/angle?model=ring.lfw", face(angle)).json
        assert abs((found["angle_ccw"] - angle + 180) % 360 - 180) < 4


def test_a_form_gives_a_record_for_each_file(service: Running, rocket: bytes) -> None:
    found = service.post("/v1/angle", ("ü.webp", rocket), ("notes.txt", b"no image"))
    first, second = found.json["results"]
    assert found.status == 200
    assert (first["name"], first["model"]) == ("ü.webp", zoo.DEFAULT)
    assert second["name"] == "notes.txt"
    assert second["error"]["code"] == "not_an_image"


def test_which_beams_decided_is_asked_of_the_middle_alone(service: Running) -> None:
    """Both ends of an oblong picture may change the estimate; the wedges hide parts of neither."""
    noise = np.random.default_rng(0).integers(0, 256, (24, 36, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize((360, 240), Image.Resampling.BICUBIC).save(file, "PNG")
    model = Canonicalizer("general")
    look = model.look(file.getvalue())
    assert look.view is not None and look.ends is not None
    (middle,) = model.answers_from_views(look.view[None])
    found = service.ask("POST", "/v1/angle?beams=true&model=general", file.getvalue()).json
    assert abs(found["angle_ccw"] - middle.angle_degrees) > 90  # the ends changed it
    assert found["beams"] == pytest.approx(heat(model, look.view), abs=1e-3)


def test_which_beams_decided_is_a_number_for_each_wedge(service: Running, rocket: bytes) -> None:
    found = service.ask("POST", "/v1/angle?beams=true&model=ring.coil100", rocket).json
    assert len(found["beams"]) == 24
    assert min(found["beams"]) >= 0 < max(found["beams"])


def test_upright_gives_the_file_back_turned(service: Running, face: Face) -> None:
    found = service.ask("POST", "/v1/upright?model=ring.lfw&min_confidence=0.5", face(90))
    assert found.headers["content-type"] == "image/png"
    assert found.headers["radialbeams-action"] == "turned"
    assert float(found.headers["radialbeams-angle-ccw"]) == pytest.approx(90, abs=4)
    assert Image.open(io.BytesIO(found.data)).format == "PNG"


def test_an_angle_by_hand_needs_no_model(service: Running, face: Face) -> None:
    found = service.ask("POST", "/v1/upright?angle=90&format=bmp", face(90))
    back, upright = (Image.open(io.BytesIO(data)).convert("RGB") for data in (found.data, face(0)))
    assert found.headers["content-type"] == "image/bmp"
    assert "radialbeams-model" not in found.headers
    assert back.tobytes() == upright.tobytes()


def test_upright_as_json_holds_the_image(service: Running, rocket: bytes) -> None:
    found = service.post("/v1/upright?output=json&angle=0", ("rocket.webp", rocket))
    (record,) = found.json["results"]
    assert record["type"] == "image/webp"
    assert base64.b64decode(record["image"]) == rocket


def test_a_zip_holds_safe_and_distinct_names(service: Running, rocket: bytes) -> None:
    names = ("../../etc/x.png", "C:\\x.png", "x.webp", "results.json", "bad")
    files = [(name, rocket) for name in names[:4]] + [(names[4], b"none")]
    found = service.post("/v1/upright?output=zip&angle=10", *files)
    with zipfile.ZipFile(io.BytesIO(found.data)) as pack:
        assert pack.namelist() == ["x.webp", "x-2.webp", "x-3.webp", "results.webp", "results.json"]
        listed = json.loads(pack.read("results.json"))
    assert [entry["name"] for entry in listed] == [names[0], "x.png", *names[2:]]
    assert "error" in listed[4]


# --- what is refused ---


def pixels(width: int, height: int) -> bytes:
    return png(width, height, 8, 2, b"")


REFUSED = [
    ("POST", "/v1/angle", b"", 400, "no_file"),
    ("POST", "/v1/angle", b"hello", 422, "not_an_image"),
    ("POST", "/v1/angle?model=none", b"x", 400, "bad_option"),
    ("POST", "/v1/angle?model=ring&model=ring", b"x", 400, "bad_option"),
    ("POST", "/v1/angle?corners=crop", b"x", 400, "bad_option"),
    ("POST", "/v1/angle?posterior=yes", b"x", 400, "bad_option"),
    ("POST", "/v1/upright?angle=nan", b"x", 400, "bad_option"),
    ("POST", "/v1/upright?quality=0", b"x", 400, "bad_option"),
    ("POST", "/v1/upright?fill=nocolour", b"x", 400, "bad_option"),
    ("POST", "/v1/angle", bytes(2**20 + 1), 413, "too_large"),
    ("POST", "/v1/angle", pixels(3000, 3000), 422, "not_an_image"),
    ("GET", "/v1/angle", None, 405, "wrong_method"),
    ("GET", "/nothing", None, 404, "not_found"),
    ("GET", "/../../../etc/passwd", None, 404, "not_found"),
    ("GET", "/samples/%2e%2e/__init__.py", None, 404, "not_found"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "code"), REFUSED)
def test_what_is_wrong_comes_in_one_shape(
    service: Running, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    found = service.ask(method, path, body)
    assert (found.status, found.json["error"]["code"]) == (status, code)
    assert found.json["error"]["message"].endswith(".")


def test_forms_that_are_no_forms_are_refused(service: Running, rocket: bytes) -> None:
    body, kind = form(("a.webp", rocket))
    for sent, said in ((body[:-20], kind), (b"hello", kind), (body, "multipart/form-data")):
        found = service.ask("POST", "/v1/angle", sent, {"content-type": said})
        assert (found.status, found.json["error"]["code"]) in {(400, "bad_body"), (400, "no_file")}
    field = b'--limit\r\nContent-Disposition: form-data; name="model"\r\n\r\nring\r\n--limit--\r\n'
    found = service.ask("POST", "/v1/angle", field, {"content-type": kind})
    assert "?model=ring" in found.json["error"]["message"]


def test_a_result_that_is_far_larger_than_a_file_may_be_is_refused(service: Running) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (1300, 1300)).save(stream, "PNG")
    found = service.ask("POST", "/v1/upright?angle=0&format=bmp", stream.getvalue())
    assert (found.status, found.json["error"]["code"]) == (413, "too_large")
    assert "compressed format" in found.json["error"]["message"]


def test_too_many_files_and_several_for_one_image_are_refused(service: Running) -> None:
    many = service.post("/v1/angle", *[("a", b"x")] * 9)
    assert (many.status, many.json["error"]["code"]) == (413, "too_many_files")
    two = service.post("/v1/upright?output=image", ("a", b"x"), ("b", b"x"))
    assert (two.status, two.json["error"]["code"]) == (400, "bad_option")


def test_a_body_without_a_length_is_measured_while_it_comes(service: Running) -> None:
    pieces = (bytes(2**16) for _ in range(20))
    assert service.ask("POST", "/v1/angle", pieces).json["error"]["code"] == "too_large"


def test_errors_name_what_a_client_can_do(service: Running) -> None:
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("red", "blue")]
    several, wide = io.BytesIO(), io.BytesIO()
    frames[0].save(several, "GIF", save_all=True, append_images=frames[1:])
    Image.new("1", (9000, 9000)).save(wide, "PNG")  # more pixels than the limit
    for data, words in ((several, "send first_frame=true"), (wide, "Make the image smaller.")):
        message = service.ask("POST", "/v1/angle", data.getvalue()).json["error"]["message"]
        assert words in message and "--" not in message and "(" not in message
    assert "error" not in service.ask("POST", "/v1/angle?first_frame=true", several.getvalue()).json


# --- around it ---


def test_the_examples_of_the_openapi_are_true(service: Running, rocket: bytes) -> None:
    operation = service.ask("GET", "/openapi.json").json["paths"]["/v1/angle"]["post"]
    shown = operation["responses"]["200"]["content"]["application/json"]["examples"]
    found = service.post("/v1/angle", ("rocket.webp", rocket), ("a.txt", b"text")).json
    assert similar(found, shown["form"]["value"])
    assert similar(service.ask("POST", "/v1/angle", rocket).json, shown["image"]["value"])
    assert service.ask("POST", "/v1/angle", b"text").json == openapi.EXAMPLE_ERROR


def similar(found: Any, shown: Any) -> bool:
    """The last digits depend on the processor."""
    if isinstance(shown, dict):
        return found.keys() == shown.keys() and all(similar(found[k], shown[k]) for k in shown)
    if isinstance(shown, list):
        return all(similar(a, b) for a, b in zip(found, shown, strict=True))
    return abs(found - shown) < 0.3 if isinstance(shown, float) else bool(found == shown)


def test_every_answer_carries_the_security_headers(service: Running) -> None:
    for path in ("/", "/healthz", "/nothing", "/v1/models"):
        headers = service.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_health_models_and_metrics(service: Running, rocket: bytes) -> None:
    assert service.ask("GET", "/healthz").json == {"status": "ok"}
    assert service.ask("GET", "/readyz").json == {"status": "ready"}
    models = service.ask("GET", "/v1/models").json
    assert [model["name"] for model in models["models"]] == zoo.names()
    assert models["default"] == zoo.DEFAULT
    service.ask("POST", "/v1/angle", rocket)
    text = service.ask("GET", "/metrics").data.decode()
    line = r'^radialbeams_requests_total\{route="/v1/angle",status="200"\} [1-9]\d*$'
    assert re.search(line, text, re.MULTILINE)
    assert all(
        re.fullmatch(r'#.*|\w+(\{[\w="/.,+]*\})? [\d.e+-]+', row) for row in text.splitlines()
    )


def test_nothing_is_held_when_all_is_answered(service: Running, face: Face) -> None:
    service.post("/v1/upright?output=zip&angle=5", ("a", face(0)), ("b", face(0)))
    service.ask("POST", "/v1/upright?angle=5", face(0))
    text = service.ask("GET", "/metrics").data.decode()
    assert "\nradialbeams_held_bytes 0\n" in text
    assert f'"files": 1, "bytes": {len(face(0))}' in service.log.read_text()


def test_the_log_names_no_file_and_no_path_of_a_request(service: Running) -> None:
    service.post("/v1/angle?model=ring", ("holiday.jpg", b"secret"))
    service.ask("GET", "/private/name")
    text = service.log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert not re.search("holiday|secret|private", text)
    assert {"method", "route", "status", "ms", "files", "bytes"} <= set(lines[-1])


def test_slow_clients_do_not_hold_up_others(service: Running, rocket: bytes) -> None:
    slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(50)]
    try:
        for number, one in enumerate(slow):
            head = b"POST /v1/angle HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n"
            one.sendall(head[: 20 + number] if number % 2 else head + b"abc")
        assert service.ask("POST", "/v1/angle", rocket).status == 200
    finally:
        for one in slow:
            one.close()


def test_damaged_uploads_get_2xx_or_4xx_and_the_worker_lives(service: Running) -> None:
    """`python -m tests.probe --only uploads` sends thousands."""
    with ThreadPoolExecutor(8) as threads:
        bodies = [damaged(number, 7)[2] for number in range(200)]
        paths = ["/v1/angle?model=ring.coil100", "/v1/upright?model=ring.coil100&min_confidence=0"]
        calls = [threads.submit(service.ask, "POST", paths[n % 2], b) for n, b in enumerate(bodies)]
        statuses = {call.result().status for call in calls}
    assert statuses <= {200, 400, 413, 422}
    assert {200, 422} <= statuses
    assert service.ask("GET", "/readyz").status == 200


def test_a_stop_finishes_what_was_accepted(tmp_path: Path, face: Face) -> None:
    running = start(tmp_path, "--model", "ring.coil100", "--no-page", "--no-log")
    with ThreadPoolExecutor(24) as threads:
        calls = [threads.submit(running.ask, "POST", "/v1/upright", face(30)) for _ in range(24)]
        calls[0].result()
        running.process.send_signal(signal.SIGTERM)
        assert {call.result().status for call in calls} == {200}
    assert running.process.wait(20) == 0
    assert "stopped" in running.log.read_text()
