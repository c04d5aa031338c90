"""Hostile names and entries: none is left out in silence, none reaches the terminal raw."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from .bench import Case, Family
from .command import ALL, Done, judge_command
from .gallery import content_of, picture
from .users import as_nobody

ENTRIES = 14  # drawn for each case
NAMES: tuple[bytes, ...] = (
    b"plain.png",
    b"a" * 251 + b".png",
    b"b" * 244 + b".png",
    b"c" * 238 + b".png",
    "ä".encode() * 125 + b".png",
    b"line\nbreak.png",
    b"tab\treturn\r.png",
    b"\x1b[2J\x1b]0;title\x07.png",
    b"\x1b[31mred.png",
    "\u202egnp.evil.png".encode(),
    "\u2066isolate\u2069.png".encode(),
    "zero\u200bwidth.png".encode(),
    "\x9b2Jcsi.png".encode(),
    b"\xff\xfe not utf-8.png",
    b"half \xc3.png",
    b"-o.png",
    b"--in-place.png",
    b"-.png",
    b" .png",
    b"trailing .png ",
    b"quote'\"`.png",
    b"$(touch planted).png",
    b"%s %n {0} \\.png",
    b"*?[a].png",
    b"CON.png",
    "e\u0301.png".encode(),
    "\u00e9.png".encode(),
    b"CASE.png",
    b"case.png",
    b"double.png.png",
    b"photo-upright.png",
    b"photo.png",
    b"odd.\x1b[2Jsuffix",
    b"odd.\xe2\x80\xaetxt",
    b"only.\n",
    b".hidden.png",
)


def check(case: Case) -> None:
    folder = os.fsencode(case.folder / "in")
    os.mkdir(folder)
    for name in case.rng.sample(NAMES, ENTRIES):
        _save(case, os.path.join(folder, name))
    for plant in case.rng.sample(SPECIAL, 3):
        plant(case, folder)
    judge_verbs(case, folder)


def judge_verbs(case: Case, folder: bytes) -> None:
    """Three verbs over the folder; then its files by their names, as a shell would give them."""
    expected = reachable(folder)
    before = {path: content_of(path) for path in expected}
    user = as_nobody() if case.number % 3 == 2 else None
    if user is not None:
        os.chmod(case.folder, 0o777)
    elif case.number % 3 == 2:
        case.skipped.append("no command can be run as nobody here; ran as the present user")
    wrap = user or ()
    for words in (
        ("angle", "in", "--model", ALL[1], "--json"),
        ("upright", "in", "-o", "out", *ALL, "--json"),
        ("upright", "in", "-o", "out-talk", *ALL),
        ("angle", "in", "--model", ALL[1]),
    ):
        done = case.command.run(*words, cwd=case.folder, wrap=wrap)
        what = f"{' '.join(words[:3])}{' as nobody' if user else ''}"
        judge_command(case, done, (0, 1), what)
        if "--json" in words:
            judge_complete(case, done, _seen_by(bool(user), expected, folder), what)
            judge_forbidden(case, done, folder, bool(user), what)
    for path, content in before.items():
        if content_of(path) != content:
            case.found("lost", f"{path!r} changed without --in-place")
    _by_name(case, folder)


def _seen_by(nobody: bool, expected: set[bytes], folder: bytes) -> set[bytes]:
    """In place of the files in a folder that a user may not list, the folder itself must fail."""
    closed = os.path.join(folder, b"forbidden")
    if not nobody or not os.path.isdir(closed):
        return expected
    return {path for path in expected if os.path.dirname(path) != closed} | {closed}


def _by_name(case: Case, folder: bytes) -> None:
    """In place, since there long names and odd letters hurt most."""
    names = [os.path.basename(path) for path in reachable(folder)]
    inside = Path(os.fsdecode(folder))
    done = case.command.run("upright", "--in-place", *ALL, "--json", "--", *names, cwd=inside)
    judge_command(case, done, (0, 1, 2), "by name")
    if done.code != 2:
        judge_complete(case, done, {os.path.basename(path) for path in names}, "by name")
    left = [name for name in os.listdir(folder) if b"radialbeams" in name or b"part" in name]
    if left:
        case.found("other", f"by name: left behind: {left[:3]}")


def judge_complete(case: Case, done: Done, expected: set[bytes], what: str) -> None:
    told = {os.path.basename(os.fsencode(str(r.get("path")))) for r in done.records}
    for path in sorted(expected):
        if os.path.basename(path) not in told:
            case.found("omitted", f"{what}: no record of {path!r}")


def judge_forbidden(case: Case, done: Done, folder: bytes, as_user: bool, what: str) -> None:
    """An unreadable folder is a failure, and the exit code shows it."""
    forbidden = any(name.startswith(b"forbidden") for name in os.listdir(folder))
    if as_user and forbidden and done.code == 0:
        case.found("omitted", f"{what}: an unreadable folder was passed over with exit code 0")


def reachable(folder: bytes) -> set[bytes]:
    """The images that a run over the folder has to account for: not hidden, with a known ending."""
    found = set()
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(b".")]
        for name in files:
            path = os.path.join(place, name)
            with suppress(OSError):
                if (
                    name.endswith(b".png")
                    and name[:1] != b"."
                    and stat.S_ISREG(os.stat(path).st_mode)
                ):
                    found.add(path)
    upright = os.path.join(folder, b"photo-upright.png")
    return found - {upright}  # beside photo.png it counts as an output


def _save(case: Case, path: bytes) -> None:
    stream = BytesIO()
    picture(case.rng).save(stream, "png")
    with suppress(OSError), open(path, "wb") as file:  # some systems refuse some names
        file.write(stream.getvalue())


# --- what is no file ---------------------------------------------------------------------------


def looping_links(case: Case, folder: bytes) -> None:
    os.symlink(b"loop-b.png", os.path.join(folder, b"loop-a.png"))
    os.symlink(b"loop-a.png", os.path.join(folder, b"loop-b.png"))
    os.symlink(b".", os.path.join(folder, b"self"))
    os.symlink(b"..", os.path.join(folder, b"up.png"))


def broken_links(case: Case, folder: bytes) -> None:
    os.symlink(b"missing.png", os.path.join(folder, b"broken.png"))
    os.symlink(b"x" * 4000, os.path.join(folder, b"long-target.png"))


def long_link_below(case: Case, folder: bytes) -> None:
    """In a folder of its own: one entry must not take its neighbours along."""
    os.mkdir(os.path.join(folder, b"mixed"))
    os.symlink(b"self.png", os.path.join(folder, b"mixed", b"self.png"))
    _save(case, os.path.join(folder, b"mixed", b"neighbour.png"))


def pipes(case: Case, folder: bytes) -> None:
    os.mkfifo(os.path.join(folder, b"pipe.png"))
    os.mkfifo(os.path.join(folder, b"pipe"))


def sockets(case: Case, folder: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as server, suppress(OSError):
        server.bind(os.path.join(folder, b"socket.png"))


def forbidden_folder(case: Case, folder: bytes) -> None:
    path = os.path.join(folder, b"forbidden")
    os.mkdir(path)
    _save(case, os.path.join(path, b"inside.png"))
    os.chmod(path, 0o000 if os.geteuid() == 0 else 0o700)


def listed_only_folder(case: Case, folder: bytes) -> None:
    """Its names can be read, and nothing else about them."""
    path = os.path.join(folder, b"forbidden-listed")
    os.mkdir(path)
    _save(case, os.path.join(path, b"inside.png"))
    os.chmod(path, 0o744)


def forbidden_file(case: Case, folder: bytes) -> None:
    path = os.path.join(folder, b"unreadable.png")
    _save(case, path)
    os.chmod(path, 0o000)


def folder_with_an_ending(case: Case, folder: bytes) -> None:
    os.mkdir(os.path.join(folder, b"folder.png"))
    _save(case, os.path.join(folder, b"folder.png", b"inside.png"))


SPECIAL = (
    looping_links,
    broken_links,
    long_link_below,
    pipes,
    sockets,
    forbidden_folder,
    listed_only_folder,
    forbidden_file,
    folder_with_an_ending,
)
FAMILY = Family("names", "hostile names, links, pipes, forbidden folders", check, cases=30)
