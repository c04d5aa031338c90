"""The page in a real Chromium: on the service, and as static files without one."""

from __future__ import annotations

import base64
import io
import re
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image

from radialbeams import Canonicalizer
from radialbeams.decisions import Surroundings, decide
from radialbeams.demo import PICTURES
from radialbeams.posterior import Answer, Thresholds
from radialbeams.serving import write_page
from radialbeams.serving.heat import heat

from .conftest import Running

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
RUNTIME = ROOT / ".runtime" / "onnxruntime-web" / "dist"
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="There is no Chromium: apt install chromium"
)
Face = Callable[[float], bytes]
WAIT = 30_000  # milliseconds
ANGLES = (10, 47, 83, 120, 158, 190, 224, 261, 299, 340)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        # Its sandbox needs rights that containers do not have; the pages are our own.
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page without a service."""
    if not RUNTIME.is_dir():
        pytest.skip("There is no onnxruntime-web: `make page` gets it from npm")
    folder = tmp_path_factory.mktemp("static") / "page"
    write_page(folder, RUNTIME, ("ring", "ring.lfw", "general"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="module", params=["service", "static"])
def page(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    """The page with and without a service, opened once: it has to last through many uses."""
    if request.param == "service":
        url = request.getfixturevalue("service").url
    else:
        url = request.getfixturevalue("static")
    with watched(browser, url) as found:
        yield found


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens the page for one test."""
    with ExitStack() as pages:
        yield lambda url, **options: pages.enter_context(watched(browser, url, **options))


@contextmanager
def watched(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """At the end: no console errors, and no request has left the machine."""
    troubles: list[str] = []
    context = browser.new_context(**{"viewport": {"width": 1180, "height": 1000}, **options})
    page = context.new_page()
    page.set_default_timeout(WAIT)
    page.on("console", lambda m: troubles.extend([m.text] * (m.type in ("error", "warning"))))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda r: troubles.extend([r.url] * (not _is_local(r.url))))
    page.goto(url)
    page.wait_for_selector("body.ready")
    yield page
    context.close()
    assert troubles == []


def _is_local(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:", "data:"))


def upload(name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": "image/png", "buffer": data}


def turn_to(page: Any, angle: float) -> float:
    """Turns the dial, waits for the answer to that angle, and returns its error."""
    page.fill("#turn input[type=number]", str(angle))
    page.press("#turn input[type=number]", "Enter")
    page.wait_for_selector(f'#answer dd.is-truth:text-is("{angle:.1f}°")')
    return error_of(page)


def error_of(page: Any) -> float:
    return float(page.inner_text("#answer dd.is-error").rstrip("°"))


def shown(page: Any, canvas: str) -> bytes:
    """The pixels of a canvas, as PNG."""
    address = page.eval_on_selector(canvas, "canvas => canvas.toDataURL()")
    return base64.b64decode(address.partition(",")[2])


# --- one picture ---


def test_the_answer_follows_the_dial(page: Any) -> None:
    page.click("#samples button:nth-child(2)")
    page.wait_for_selector('#answer h2:text-is("ring.lfw")')
    errors = [turn_to(page, angle) for angle in ANGLES]
    assert max(errors) < 5
    measured = page.evaluate("performance.getEntriesByName('answer').map((e) => e.duration)")
    assert len(measured) >= len(ANGLES)


@pytest.mark.parametrize("angle", [40, 10, 20])
def test_it_opens_with_a_sample_that_is_turned_upright(page: Any, angle: int) -> None:
    page.reload()
    page.wait_for_selector('#answer dd.is-truth:text-is("40.0°")')
    error = error_of(page) if angle == 40 else turn_to(page, angle)
    assert error < 5
    assert page.inner_text("#answer .verdict") in ("Sure.", "Fairly sure.")
    assert float(page.input_value("#result input[type=number]")) == pytest.approx(angle, abs=5)


WORDS = """async (answers) => {
  const { inWords } = await import("./words.js");
  return answers.map(inWords);
}"""


def test_the_verdict_says_what_decided(opened: Any, service: Running) -> None:
    usual = {"angle": 40, "confidence": 0.97, "symmetry": 1, "action": "unsure", "value": 0.0014}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"measure": "exact"}, "such pictures are only turned by quarters."),
        ({"measure": "upright"}, "it may be upright already; the probability is above the limit."),
        ({"measure": "confidence"}, "Left alone: the model is unsure."),
        ({"measure": "confidence", "symmetry": 0}, "Left alone: no clear up was found."),
        ({"measure": "quarter", "action": "left", "angle": 355.2}, "Tilted by about 5°."),
        ({"measure": "quarter", "action": "left", "angle": 359.2}, "Upright already."),
        ({"measure": "quarter", "action": "turned", "confidence": 0.7, "value": 0.98}, "Sure."),
    ]
    texts = opened(service.url).evaluate(WORDS, [{**usual, **fields} for fields, _ in cases])
    for text, (_, expected) in zip(texts, cases, strict=True):
        assert expected in text and "Probably" not in text


def test_dragging_around_the_dial_turns_the_picture(opened: Any, service: Running) -> None:
    page = opened(service.url)
    page.click("#samples button:nth-child(2)")
    turn_to(page, 0)
    box = page.locator("#turn .dial").bounding_box()
    x, y, radius = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"] / 3
    before = shown(page, "#turn canvas")
    page.mouse.move(x, y - radius)
    page.mouse.down()
    page.mouse.move(x - radius * 0.7071, y - radius * 0.7071, steps=4)
    page.mouse.move(x - radius, y, steps=4)
    page.mouse.up()
    assert float(page.input_value("#turn input[type=range]")) == pytest.approx(90, abs=1)
    page.wait_for_selector('#answer dd.is-truth:text-matches("^(89|90)")')
    assert error_of(page) < 5
    assert shown(page, "#turn canvas") != before


def test_a_dropped_file_that_came_turned_is_shown_upright(
    opened: Any, service: Running, face: Face
) -> None:
    page = opened(service.url)
    page.select_option("#model", "ring.lfw")
    drop = """([text]) => {
        const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        const files = new DataTransfer();
        files.items.add(new File([bytes], "face.png", { type: "image/png" }));
        const options = { dataTransfer: files, bubbles: true, cancelable: true };
        document.getElementById("drop").dispatchEvent(new DragEvent("drop", options));
    }"""
    page.evaluate(drop, [base64.b64encode(face(120)).decode()])
    page.wait_for_selector('#answer dd.is-answer:text-matches("^(11[6-9]|12[0-4])")')
    page.check("#anyway")
    assert float(page.input_value("#result input[type=number]")) == pytest.approx(120, abs=4)


def test_a_sideways_picture_is_turned_by_exactly_a_quarter(opened: Any, service: Running) -> None:
    page = opened(service.url)
    rocket = Image.open(PICTURES / "rocket.webp").convert("RGB")
    stream = io.BytesIO()
    rocket.transpose(Image.Transpose.ROTATE_90).save(stream, "PNG")
    page.select_option("#model", "ring")
    page.set_input_files("#picker", upload("sideways.png", stream.getvalue()))
    page.wait_for_selector('#answer dd.is-answer:text-matches("^(8[5-9]|9[0-5])")')
    page.wait_for_selector('#answer .verdict:text-matches("ure\\.$")')
    assert page.input_value("#result input[type=number]") in ("90", "90.0")


def test_models_can_be_switched_and_compared(page: Any) -> None:
    page.click("#samples button:nth-child(1)")
    page.select_option("#model", "ring")
    page.wait_for_selector('#answer h2:text-is("ring")')
    page.select_option("#model", "ring.lfw")
    page.wait_for_selector('#answer h2:text-is("ring.lfw")')
    page.select_option("#other", "ring")
    page.wait_for_selector('#other-answer h2:text-is("ring")')
    page.wait_for_selector("#other-answer line.answer")
    assert "faces" in page.inner_text("#about")
    assert page.locator("#other-answer canvas").is_visible()
    page.select_option("#other", "")


def test_beams_and_heat_are_drawn_and_adjustable(page: Any) -> None:
    turn_to(page, 25)
    seen = [shown(page, "#turn canvas")]
    page.check("#show-beams")
    seen.append(shown(page, "#turn canvas"))
    for control, value in (("#beams", "8"), ("#length", "9")):
        page.locator(control).fill(value)
        seen.append(shown(page, "#turn canvas"))
    assert (page.inner_text("#beams-shown"), page.inner_text("#length-shown")) == ("8", "9")
    page.uncheck("#show-beams")
    assert shown(page, "#turn canvas") == seen[0]
    page.check("#show-heat")
    for _ in range(200):
        if shown(page, "#turn canvas") != seen[0]:
            break
        page.wait_for_timeout(50)
    seen.append(shown(page, "#turn canvas"))
    assert len(set(seen)) == len(seen)
    page.uncheck("#show-heat")


def test_the_upright_image_can_be_downloaded(page: Any, face: Face) -> None:
    page.set_input_files("#picker", upload("face.png", face(90)))
    page.wait_for_selector("#answer line.answer")
    page.fill("#result input[type=number]", "90")
    page.press("#result input[type=number]", "Enter")
    with page.expect_download() as waiting:
        page.click("#download")
    assert waiting.value.suggested_filename == "face-upright.png"
    found = Image.open(waiting.value.path()).convert("RGB")
    expected = Image.open(io.BytesIO(face(0)))
    # A canvas may interpolate where a quarter turn needs none, by a level or two.
    assert found.size == expected.size
    pairs = zip(found.tobytes(), expected.tobytes(), strict=True)
    assert max(abs(a - b) for a, b in pairs) <= 3


# --- many files ---


def test_many_files_one_corrected_by_hand_and_a_zip(page: Any, face: Face, tmp_path: Path) -> None:
    page.click("#samples button:nth-child(2)")  # a sample makes room for files
    page.wait_for_selector('#answer h2:text-is("ring.lfw")')
    contents = {
        "a.png": face(0),
        "b.png": face(90),
        "c/b.png": face(180),
        "broken.png": face(0)[:500],
        "large.png": bytes(33 << 20),
    }
    (tmp_path / "c").mkdir()
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    page.set_input_files("#picker", [tmp_path / name for name in contents])
    page.wait_for_selector('#progress:text-is("5 of 5 done, 2 failed")')
    rows = page.locator("#list li")
    assert "not an image that can be read" in rows.nth(3).inner_text()
    assert "MiB" in rows.nth(4).inner_text()
    rows.nth(1).get_by_role("button").click()
    page.wait_for_selector('#list li:nth-child(2)[aria-current="true"]')
    page.wait_for_selector("#result .dial:focus")
    page.keyboard.press("Home")
    for _ in range(6):
        page.keyboard.press("PageUp")
    assert "By hand: turned back by 90.0°" in rows.nth(1).inner_text()
    with page.expect_download() as waiting:
        page.click("#zip")
    with zipfile.ZipFile(waiting.value.path()) as pack:
        assert pack.testzip() is None
        assert pack.namelist() == ["a.png", "b.png", "b-2.png"]
        corrected = Image.open(io.BytesIO(pack.read("b.png"))).convert("RGB")
    upright = Image.open(io.BytesIO(face(0)))
    apart = [abs(a - b) for a, b in zip(corrected.tobytes(), upright.tobytes(), strict=True)]
    assert max(apart) <= 3
    page.click("#clear")
    assert not page.locator("#files").is_visible()


def test_a_broken_file_by_itself_is_explained(page: Any, face: Face) -> None:
    page.set_input_files("#picker", upload("broken.png", face(0)[:700]))
    page.wait_for_selector('#problem:text-matches("broken.png is damaged, or is not an image")')
    page.set_input_files("#picker", upload("fine.png", face(0)))
    page.wait_for_selector("#problem", state="hidden")


def test_the_service_reads_what_the_browser_cannot(
    opened: Any, service: Running, face: Face
) -> None:
    stream = io.BytesIO()
    Image.open(io.BytesIO(face(0))).save(stream, "TIFF")
    page = opened(service.url)
    page.set_input_files("#picker", upload("scan.tif", stream.getvalue()))
    with page.expect_download() as waiting:
        page.wait_for_timeout(500)
        page.fill("#result input[type=number]", "180")
        page.press("#result input[type=number]", "Enter")
        page.click("#download")
    assert waiting.value.suggested_filename == "scan-upright.tif"


# --- for everyone ---


def test_the_keyboard_is_enough(opened: Any, service: Running) -> None:
    page = opened(service.url)
    page.locator("#samples button:nth-child(2)").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('#answer h2:text-is("ring.lfw")')
    turn_to(page, 0)
    seen = []
    page.locator("#picker").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        if seen[-1] == "dial":
            break
    assert seen[-1] == "dial", seen
    for key in ("PageUp", "PageUp", "ArrowLeft", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_selector('#answer dd.is-truth:text-is("41.0°")')
    assert error_of(page) < 5
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px"


def test_everything_that_can_be_used_has_a_name(opened: Any, service: Running) -> None:
    page = opened(service.url)
    nameless = """() => [...document.querySelectorAll("button, input, select, [role]")]
        .filter((node) => !["group", "alert", "status"].includes(node.role))
        .filter((node) => !(node.labels?.[0]?.textContent.trim() || node.textContent.trim()
            || node.getAttribute("aria-label") || node.querySelector("img[alt]")?.alt))
        .map((node) => node.outerHTML)"""
    assert page.evaluate(nameless) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_both_schemes(opened: Any, service: Running, scheme: str) -> None:
    page = opened(
        service.url, viewport={"width": 375, "height": 800}, color_scheme=scheme, has_touch=True
    )
    page.select_option("#other", "ring.lfw")
    page.wait_for_selector("#other-answer line.answer")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    small = """() => [...document.querySelectorAll("button, select")]
        .filter((node) => node.offsetParent && node.getBoundingClientRect().height < 38).length"""
    assert page.evaluate(small) == 0


STYLE = (ROOT / "radialbeams" / "web" / "style.css").read_text(encoding="utf-8")
PAIRS = [
    ("ink", "card"),
    ("ink", "ground"),
    ("soft", "card"),
    ("soft", "ground"),
    ("wrong", "card"),
    ("answer", "card"),
    ("truth", "card"),
    ("on-accent", "accent"),
]


def luminance(colour: str) -> float:
    levels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in levels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_stand_out(scheme: int) -> None:
    block = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", block))
    for front, back in PAIRS:
        low, high = sorted((luminance(colours[front]), luminance(colours[back])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (front, back)


# --- without a service ---


ESTIMATE = """async ([text, name, beams]) => {
    const { Picture } = await import("./picture.js");
    const { Browser } = await import("./browser.js");
    const config = await (await fetch("page.json")).json();
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const file = new File([bytes], "a.png", { type: "image/png" });
    const picture = await Picture.from(file, "a.png", config.limits, () => null);
    const model = config.models.find((model) => model.name === name);
    window.kept ??= new Browser(config);
    return window.kept.estimate(picture.look(0), model, { beams });
}"""


def canvases(face: Face) -> list[bytes]:
    """Upright, turned on its canvas, on an enlarged one, with transparency, and large."""
    picture = Image.open(io.BytesIO(face(0)))
    made = [
        picture,
        picture.rotate(33),
        picture.rotate(71, expand=True, fillcolor="white"),
        picture.convert("RGBA").rotate(120, expand=True),
        picture.resize((1601, 1207)),
    ]
    found = []
    for image in made:
        stream = io.BytesIO()
        image.save(stream, "PNG")
        found.append(stream.getvalue())
    return found


DECIDE = """async (cases) => {
    const { decide } = await import("./model/decisions.js");
    return cases.map(([answer, least, plain]) => decide(answer, least, plain));
}"""


def answers_of_all_kinds() -> Iterator[tuple[Answer, Thresholds, bool]]:
    rng = np.random.default_rng(0)
    for case in range(400):
        away = np.abs((np.arange(72) * 5 - rng.uniform(0, 360) + 180) % 360 - 180)
        mass = np.exp(-away / rng.uniform(2, 60))
        posterior = (mass / mass.sum()).astype(np.float32)
        angle = rng.choice([0.0, 90.0, 180.0, 270.0]) + rng.normal(0, 4)
        chances = rng.beta(2, 0.5, 3)
        known = case % 10 > 0  # else a model that knows no chances
        least = Thresholds(0.6, 2.0, 0.4, 0.8, 0.1, tilts=bool(case % 3 == 0))
        answer = Answer(float(angle % 360))
        if known:
            answer = Answer(float(angle % 360), float(chances[0]), 1, posterior, *chances[1:])
        yield answer, least, bool(case % 2)


def check_decisions(page: Any) -> None:
    cases = list(answers_of_all_kinds())
    given = [
        (
            {
                "angle": answer.angle_degrees,
                "confidence": answer.confidence,
                "upright": answer.upright,
                "exact": answer.exact,
                "posterior": None if answer.posterior is None else answer.posterior.tolist(),
            },
            asdict(least),
            plain,
        )
        for answer, least, plain in cases
    ]
    found = page.evaluate(DECIDE, given)
    expected = [
        decide(answer, least, around=Surroundings(plain=plain)) for answer, least, plain in cases
    ]
    assert [one["action"] for one in found] == [one.action for one in expected]
    assert [one["measure"] for one in found] == [one.measure for one in expected]
    assert [one["undo"] for one in found] == pytest.approx([one.turn for one in expected])
    assert {one.action for one in expected} == {"turned", "left", "unsure"}


def test_the_browsers_answers_and_decisions_are_pythons(
    opened: Any, static: str, face: Face
) -> None:
    page = opened(static)
    files = canvases(face)
    for model in ("ring", "ring.lfw"):
        for data, expected in zip(files, Canonicalizer(model).answers(files), strict=True):
            found = page.evaluate(ESTIMATE, [base64.b64encode(data).decode(), model, False])
            assert abs((found["angle"] - expected.angle_degrees + 180) % 360 - 180) < 0.1
            assert found["confidence"] == pytest.approx(expected.confidence, abs=5e-3)
            assert found["symmetry"] == expected.symmetry
            assert found["posterior"] == pytest.approx(expected.posterior.tolist(), abs=5e-3)
            for name in ("upright", "exact"):
                assert found[name] == pytest.approx(getattr(expected, name), abs=5e-3)
    lfw = Canonicalizer("ring.lfw")
    view = lfw.view(files[1])
    found = page.evaluate(ESTIMATE, [base64.b64encode(files[1]).decode(), "ring.lfw", True])
    assert found["beams"] == pytest.approx(heat(lfw, view), abs=0.02)
    check_decisions(page)


def test_the_browser_sees_both_ends_of_an_oblong_picture(opened: Any, static: str) -> None:
    page = opened(static)
    noise = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize((360, 240), Image.Resampling.BICUBIC).save(file, "PNG")
    model = Canonicalizer("general", documents=False)
    look = model.look(file.getvalue())
    assert look.view is not None and look.ends is not None
    (expected,) = model.answers_from_looks([look])
    (middle,) = model.answers_from_views(look.view[None])
    found = page.evaluate(ESTIMATE, [base64.b64encode(file.getvalue()).decode(), "general", True])
    assert abs(found["confidence"] - middle.confidence) > 0.02  # the ends made a difference
    assert found["confidence"] == pytest.approx(expected.confidence, abs=5e-3)
    apart = abs((found["angle"] - expected.angle_degrees + 180) % 360 - 180)
    assert apart < 0.5  # degrees, of a flat posterior
    assert found["beams"] == pytest.approx(heat(model, look.view), abs=0.02)
    assert found["posterior"] == pytest.approx(expected.posterior.tolist(), abs=5e-3)


def test_the_page_goes_into_an_empty_folder_only(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="new or empty folder"):
        write_page(tmp_path, RUNTIME)
    with pytest.raises(ValueError, match="onnxruntime-web"):
        write_page(tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()
