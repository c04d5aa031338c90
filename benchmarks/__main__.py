"""All speed measurements in one command.

    python -m benchmarks [SECTION …] [--quick] [--json] [--out FOLDER]

Sections: networks, front, pipeline, sampling, training_step, start, scaling. Every time comes with
its ratio to a reference that ran in turns with it, so results of a busy machine can be compared.
Each run is kept as a JSON file in results/speed/history. Exits 1 if a bar is missed. Other scripts
in this folder answer single questions and have options of their own; `gpu.sh` runs those for a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import radialbeams
from radialbeams.stored import JsonDict

SECTIONS = ("networks", "front", "pipeline", "sampling", "training_step", "start", "scaling")
HISTORY = Path(__file__).parents[1] / "results" / "speed" / "history"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--out", type=Path, default=HISTORY, help="folder for the results")
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.sections) - set(SECTIONS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; sections are {', '.join(SECTIONS)}")
    results = measure(arguments.sections or SECTIONS, arguments.quick)
    arguments.out.mkdir(parents=True, exist_ok=True)
    place = arguments.out / f"{time.strftime('%Y-%m-%dT%H%M%S', time.gmtime())}.json"
    place.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results) if arguments.json else "\n".join(table(results)))
    for line in missed(results):
        print(f"MISSED: {line}", file=sys.stderr)
    return 1 if missed(results) else 0


def measure(sections: tuple[str, ...] | list[str], quick: bool) -> JsonDict:
    results: JsonDict = {
        "version": radialbeams.__version__,
        "machine": {"cores": os.cpu_count(), "system": platform.platform()},
        "load_before": os.getloadavg()[0],
        "quick": quick,
    }
    for name in sections:
        print(f"measuring {name} …", file=sys.stderr)
        results[name] = import_module(f"benchmarks.{name}").measure(quick)
    return results


def table(results: JsonDict) -> Iterator[str]:
    yield f"radialbeams {results['version']}, load before {results['load_before']:.1f}"
    for section in (name for name in SECTIONS if name in results):
        for group, content in results[section].items():
            yield f"\n{section}: {group}"
            if "ratio" not in content:
                yield from (f"  {name:<32}{value:>12g}" for name, value in content.items())
                continue
            for name, value in content["milliseconds"].items():
                times = f"{content['ratio'][name]:g} × {content['reference']}"
                yield f"  {name:<32}{value:>12.4g} ms   {times}"


def missed(results: JsonDict) -> list[str]:
    """A sentence for every bar that is missed."""
    from benchmarks import front, networks, pipeline, sampling, scaling

    lines = []
    for model, bar in networks.BARS.items():
        group = results.get("networks", {}).get("1 threads, batch 1")
        if group and 1 / group["ratio"][model] < bar:
            times = 1 / group["ratio"][model]
            lines.append(f"{model} is {times:.0f} times faster than ViT-S/14; at least {bar}")
    for place, row in results.get("front", {}).items():
        for model, most in front.MOST.items():
            if (share := row[f"{model}, share"]) > most:
                lines.append(f"{place}: {model} adds {share:.0%}; at most {most:.0%}")
    large = results.get("pipeline", {}).get("JPEG of 12 megapixels")
    if large:
        # Against the faster way to decode: at the scale that the view needs.
        share = large["ratio"]["Pillow decode, scaled"] / large["ratio"]["file to answer"]
        if share < pipeline.SHARE:
            lines.append(f"12-megapixel JPEGs: {share:.0%} of decoding alone; at least 70 %")
    for place, group in results.get("sampling", {}).items():
        if group["ratio"]["gather"] > sampling.MOST:
            lines.append(f"{place}: beams take {group['ratio']['gather']:.1f} copies; at most 4")
    for name, row in results.get("scaling", {}).items():
        if row.get("megabytes", 0) > scaling.MOST_MEMORY:
            lines.append(f"{name}: {row['megabytes']:.0f} MB in the parent; at most 300")
        if row.get("resume_s", 0) > scaling.MOST_RESUME:
            lines.append(f"{name}: {row['resume_s']:.1f} s until work goes on; at most 10")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
