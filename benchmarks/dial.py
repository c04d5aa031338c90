"""How fast the page responds to a turn of the dial, measured in Chromium.

    python -m benchmarks.dial [--turns 200] [--model ring] [--runtime FOLDER]

From the change of the dial until the answer is drawn, in milliseconds; the bar is 50 ms for 95 % of
the turns, on the service, on two free cores. With onnxruntime-web's folder `dist` as the runtime,
the page without a server is measured as well.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks.serving import server
from radialbeams.serving import write_page
from radialbeams.stored import JsonDict

MEASURED = "performance.getEntriesByName('answer').map((entry) => entry.duration)"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        return


def turned(page: Page, turns: int, pause: int) -> list[float]:
    """A hand that goes round the dial, a few degrees at a time, and never waits for answers."""
    page.wait_for_selector("body.ready")
    box = page.locator("#turn .dial").bounding_box()
    if box is None:
        raise RuntimeError("the dial is not shown")
    from math import cos, radians, sin

    x, y, reach = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"] * 0.45
    page.mouse.move(x, y - reach)
    page.mouse.down()
    for turn in range(turns + 10):
        if turn == 10:  # the first turns are warm-up
            page.evaluate("performance.clearMeasures('answer')")
        angle = radians(3.7 * turn)
        page.mouse.move(x - reach * sin(angle), y - reach * cos(angle))
        page.wait_for_timeout(pause)
    page.mouse.up()
    page.wait_for_timeout(300)
    durations: list[float] = page.evaluate(MEASURED)
    return sorted(durations)


def summary(where: str, model: str, times: list[float]) -> JsonDict:
    at = {f"p{q}_ms": round(times[int(q / 100 * (len(times) - 1))], 1) for q in (50, 95)}
    load = round(os.getloadavg()[0], 1)
    return {"page": where, "model": model, "answers": len(times), **at, "load": load}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--pause", type=int, default=60, help="milliseconds between two turns")
    parser.add_argument("--model", default="ring")
    parser.add_argument("--runtime", type=Path)
    arguments = parser.parse_args()
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def measure(where: str, url: str) -> None:
            page = browser.new_page(viewport={"width": 1180, "height": 900})
            page.goto(url)
            page.wait_for_selector("body.ready")
            page.select_option("#model", arguments.model)
            times = turned(page, arguments.turns, arguments.pause)
            print(json.dumps(summary(where, arguments.model, times)), flush=True)

        with server("--no-log") as running:
            measure("service", f"http://127.0.0.1:{running.port}/")
        if arguments.runtime:
            with tempfile.TemporaryDirectory() as folder:
                write_page(Path(folder) / "page", arguments.runtime)
                handler = partial(Quiet, directory=f"{folder}/page")
                static = ThreadingHTTPServer(("127.0.0.1", 0), handler)
                threading.Thread(target=static.serve_forever, daemon=True).start()
                measure("browser", f"http://127.0.0.1:{static.server_port}/")
                static.shutdown()
        browser.close()


if __name__ == "__main__":
    main()
