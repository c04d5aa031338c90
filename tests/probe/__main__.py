"""Runs the families, prints a table and the cases that failed; exits 1 if any did."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import families
from .bench import KINDS, Bench, Case, Family, Tally, opened_case
from .command import Command


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parsed(argv)
    chosen = _chosen(arguments)
    command = Command(tuple(shlex.split(arguments.command))) if arguments.command else Command()
    with tempfile.TemporaryDirectory(prefix="radialbeams-probe-", dir=arguments.folder) as name:
        Path(name).chmod(0o755)  # some cases run as another user
        bench = Bench(Path(name), command, arguments.seed)
        print(f"{_head()}  (seed {arguments.seed})")
        tallies = {}
        for family in chosen:
            tallies[family.name] = tally = run_family(bench, family, _numbers(family, arguments))
            print(_row(family.name, tally))
            _print_details(family.name, tally, arguments.seed)
    if arguments.json:
        _write_json(arguments.json, tallies, arguments.seed)
    return 1 if any(tally.findings for tally in tallies.values()) else 0


def run_family(bench: Bench, family: Family, numbers: Sequence[int], jobs: int = 2) -> Tally:
    """`jobs` cases at once; each waits for its commands most of the time."""
    tally, began = Tally(), time.monotonic()
    with ThreadPoolExecutor(1 if family.slow else jobs) as pool:
        for case in pool.map(lambda number: _run_case(bench, family, number), numbers):
            tally.tried += case.tried
            tally.findings += case.findings
            tally.skipped += [why for why in case.skipped if why not in tally.skipped]
    tally.seconds = time.monotonic() - began
    return tally


def _run_case(bench: Bench, family: Family, number: int) -> Case:
    """A case that breaks down itself has failed: it has shown nothing."""
    with opened_case(bench, family.name, number) as case:
        try:
            family.check(case)
        except Exception as error:
            case.found("other", f"the probe broke down: {type(error).__name__}: {error}")
    return case


# --- what was asked for ------------------------------------------------------------------------


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.probe", description=__doc__)
    for family in families.ALL:
        unit = "files" if family.each > 1 else "cases"
        note = "; runs only when named" if family.slow else ""
        text = f"{family.about} ({unit}, default {family.cases}{note})"
        parser.add_argument(f"--{family.name}", type=int, metavar="N", help=text)
    parser.add_argument("--only", action="append", metavar="NAME", help="only this family")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, help="how many cases of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the counts to this file")
    parser.add_argument("--folder", type=Path, help="where to work; default: the temporary folder")
    parser.add_argument("--command", help="another program to test, with the same verbs")
    arguments = parser.parse_args(argv)
    names = [family.name for family in families.ALL]
    for name in arguments.only or ():
        if name not in names:
            parser.error(f"expected one of {', '.join(names)}; got {name}")
    return arguments


def _chosen(arguments: argparse.Namespace) -> list[Family]:
    if arguments.only:
        return [family for family in families.ALL if family.name in arguments.only]
    return [f for f in families.ALL if not f.slow or getattr(arguments, f.name) is not None]


def _numbers(family: Family, arguments: argparse.Namespace) -> range:
    count = getattr(arguments, family.name)
    count = family.cases if count is None else count
    cases = -(-count // family.each) if arguments.cases is None else arguments.cases
    return range(arguments.first, arguments.first + cases)


# --- what is reported --------------------------------------------------------------------------


def _head() -> str:
    return f"{'family':<12}{'tried':>7}" + "".join(f"{kind:>10}" for kind in KINDS) + "   seconds"


def _row(name: str, tally: Tally) -> str:
    cells = "".join(f"{tally.kinds[kind]:>10,}" for kind in KINDS)
    note = "".join(f"  skipped: {why}" for why in tally.skipped)
    return f"{name:<12}{tally.tried:>7,}{cells}{tally.seconds:>10.0f}{note}"


def _print_details(name: str, tally: Tally, seed: int) -> None:
    """One line for each case and kind; the JSON file has all of them."""
    groups: dict[tuple[int, str], list[str]] = {}
    for finding in tally.findings:
        groups.setdefault((finding.number, finding.kind), []).append(finding.text)
    for (number, kind), texts in groups.items():
        more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
        where = f"--only {name} --first {number} --cases 1 --seed {seed}"
        print(f"  {where}: {kind}: {texts[0]}{more}")
    sys.stdout.flush()


def _write_json(path: Path, tallies: dict[str, Tally], seed: int) -> None:
    content = {
        "seed": seed,
        "families": {
            name: {
                "tried": tally.tried,
                **{kind: tally.kinds[kind] for kind in KINDS},
                "seconds": round(tally.seconds, 1),
                "skipped": tally.skipped,
                "findings": [vars(finding) for finding in tally.findings],
            }
            for name, tally in tallies.items()
        },
    }
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
