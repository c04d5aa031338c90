"""What people expect of a command for files: refusals in words, patterns, lists, backups."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from radialbeams import images
from radialbeams.cli import main
from radialbeams.cli.inputs import paths_in
from radialbeams.demo import PICTURES

Said = tuple[int, str, str]
TURNING = ("--model", "ring.lfw", "-j", "1", "--min-confidence", "0")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*arguments: object) -> Said:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, " ".join(err.split())

    return run


def face(path: Path, turn: float = 40, expand: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(PICTURES / "astronaut.webp") as picture:
        small = picture.convert("RGB").resize((160, 120), Image.Resampling.LANCZOS)
    small.rotate(turn, Image.Resampling.BICUBIC, expand=expand, fillcolor="white").save(path)
    return path


def records(out: str) -> dict[str, dict[str, object]]:
    return {Path(one["path"]).name: one for one in map(json.loads, out.splitlines())}


# --- refused at once ---


@pytest.mark.parametrize("verb", ["upright", "angle", "models", "train", "evaluate", "leaks"])
def test_h_is_help(run: Callable[..., Said], verb: str) -> None:
    code, out, _ = run(verb, "-h")
    assert code == 0 and f"radialbeams {verb}" in out


@pytest.mark.parametrize("verb", ["upright", "angle"])
def test_a_model_that_is_nearly_named_right_is_suggested(
    run: Callable[..., Said], tmp_path: Path, verb: str
) -> None:
    code, out, err = run(verb, face(tmp_path / "a.png"), "--model", "rung")
    assert (code, out) == (2, "")
    assert "--model" in err and "got 'rung'" in err and "Did you mean ring?" in err


def test_transparent_corners_of_jpegs_are_refused_once(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    for number in range(3):
        face(tmp_path / "in" / f"{number}.jpg")
    code, _, err = run("upright", tmp_path / "in", "-o", tmp_path / "out", "--fill", "transparent")
    assert code == 2 and err.count("without transparency") == 1
    assert "0.jpg" in err and "--format png" in err
    assert not (tmp_path / "out").exists()


def test_an_output_folder_among_the_inputs_drops_none_of_them(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    face(tmp_path / "photos" / "a.png")
    face(tmp_path / "photos" / "phone" / "b.png")
    code, _, err = run("upright", tmp_path / "photos", "-o", tmp_path / "photos" / "phone")
    assert code == 2
    assert (
        "lies inside an input folder and holds images that would be skipped, such as b.png" in err
    )
    new = tmp_path / "photos" / "new"
    code, _, err = run("upright", tmp_path / "photos", "-o", new, *TURNING)
    assert code == 0
    assert f"the output folder {new} lies inside an input folder. This command does not" in err
    assert sorted(p.name for p in new.rglob("*.png")) == ["a.png", "b.png"]
    # The same command again meets its own outputs, which are no inputs.
    code, _, err = run("upright", tmp_path / "photos", "-o", new, *TURNING)
    assert code == 0 and "2 skipped, the output exists" in err
    assert "outputs that exist were kept" in err and "add --overwrite" in err


@pytest.mark.parametrize("name", ["--in-place.jpg", "-x.jpg"])
def test_a_file_name_that_begins_with_a_dash_gets_a_hint(
    run: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    face(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    code, _, err = run("angle", name)
    assert code == 2 and "No such option" in err
    assert "Put -- before file names that begin with a dash." in err
    assert run("angle", *TURNING[:4], "--", name)[0] == 0
    assert "Put --" not in run("angle", "--modle", "ring")[2]


def test_one_output_with_an_unknown_ending_is_refused(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    picture = face(tmp_path / "in" / "a.png")
    code, _, err = run("upright", picture, "-o", tmp_path / "single.xyz")
    assert code == 2 and "no image can be written" in err and ".jpg, .jpeg" in err
    assert "end the name with /" in err and not (tmp_path / "single.xyz").exists()
    for folder in ("plain", "photos.2024", "named.xyz/"):
        assert run("upright", picture, "-o", f"{tmp_path}/{folder}", *TURNING)[0] == 0
        assert (tmp_path / folder / "a.png").is_file()
    # A folder goes to a folder, whatever its name is.
    assert run("upright", tmp_path / "in", "-o", tmp_path / "all.abc", *TURNING)[0] == 0


def test_the_pixels_of_a_jpeg_are_turned_on_request(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    picture = face(tmp_path / "a.jpg", 90, expand=True)
    code, _, err = run("upright", picture, "--exif", "--pixels")
    assert code == 2 and "--exif and --pixels exclude each other" in err
    options = ("--snap", 90, "--json", *TURNING)
    for name, flags, method in (("tag.jpg", (), "exif"), ("moved.jpg", ("--pixels",), "encoded")):
        code, out, _ = run("upright", picture, "-o", tmp_path / name, *flags, *options)
        applied = records(out)["a.jpg"]["applied"]
        assert code == 0 and applied["method"] == method  # type: ignore[index]
    with Image.open(tmp_path / "tag.jpg") as tag, Image.open(tmp_path / "moved.jpg") as moved:
        assert tag.size == (120, 160) and moved.size == (160, 120)


def test_nothing_named_is_wrong_usage(run: Callable[..., Said]) -> None:
    code, _, err = run("upright")
    assert code == 2 and "Expected image files or folders" in err


def test_backup_needs_in_place(run: Callable[..., Said], tmp_path: Path) -> None:
    code, _, err = run("upright", face(tmp_path / "a.png"), "--backup")
    assert code == 2 and "--backup needs --in-place." in err


# --- which files ---


def test_patterns_and_depth_choose_the_files(run: Callable[..., Said], tmp_path: Path) -> None:
    for name in ("a.png", "b.jpg", "draft-c.png", "deep/d.png"):
        face(tmp_path / name)
    every = ("angle", tmp_path, "--json", "--model", "ring.lfw", "-j", 1)
    code, out, err = run(*every, "--include", "*.png", "--exclude", "draft*", "--no-recursive")
    assert (code, list(records(out))) == (0, ["a.png"])
    assert "2 excluded by patterns" in err
    assert list(records(run(*every, "--include", "deep/*")[1])) == ["d.png"]


def test_a_list_of_files_comes_from_standard_input(
    run: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [face(tmp_path / "a b.png"), face(tmp_path / "c.png")]
    listed = "\n".join(map(str, paths)).encode() + b"\n"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(listed)))
    code, out, _ = run("angle", "--files-from", "-", "--json", "--model", "ring.lfw", "-j", 1)
    assert (code, list(records(out))) == (0, ["a b.png", "c.png"])


def test_lists_are_separated_by_lines_or_zero_bytes(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"a\r\nb c\n\n")
    assert paths_in(str(tmp_path / "list")) == ["a", "b c"]
    (tmp_path / "list").write_bytes(b"a\nb\0c\0")
    assert paths_in(str(tmp_path / "list")) == ["a\nb", "c"]


def test_a_file_with_several_frames_is_skipped_and_said_to_be_missing(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    face(tmp_path / "in" / "a.png")
    frames = [Image.new("RGB", (60, 40), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "in" / "b.gif", save_all=True, append_images=frames[1:])
    (tmp_path / "in" / "notes.txt").touch()
    options = ("-o", tmp_path / "out", "--report", tmp_path / "r.html", "--json", *TURNING)
    code, out, err = run("upright", tmp_path / "in", *options)
    found = records(out)["b.gif"]
    assert (code, found["action"], found["reason"]) == (0, "skipped", "several frames")
    assert "b.gif: skipped. It has several frames or pages. Use the first with" in err
    assert "1 skipped, several frames or pages" in err and "failed" not in err
    assert f"2 files are not in {tmp_path / 'out'} (1 skipped, 1 not read)" in err
    assert "several frames or pages, skipped" in (tmp_path / "r.html").read_text(encoding="utf-8")
    again = ("--first-frame", "--overwrite", *options)
    assert records(run("upright", tmp_path / "in", *again)[1])["b.gif"]["action"] != "skipped"
    # If it is all there is, nothing was done.
    assert run("upright", tmp_path / "in" / "b.gif", "-o", tmp_path / "c.gif", *TURNING)[0] == 1
    assert run("angle", tmp_path / "in" / "b.gif", "--json", *TURNING[:4])[0] == 1


# --- what is written ---


def test_without_an_output_folder_only_turned_files_are_written(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    face(tmp_path / "turned.png")
    noise = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    options = ("--model", "ring.lfw", "-j", "1", "--min-confidence", "0.5")
    assert run("upright", tmp_path, *options)[0] == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["noise.png", "turned-upright.png", "turned.png"]


def test_outputs_keep_times_and_permissions(run: Callable[..., Said], tmp_path: Path) -> None:
    path = face(tmp_path / "a.png")
    os.utime(path, (1e9, 1e9))
    path.chmod(0o640)
    assert run("upright", path, "-o", tmp_path / "b.png", *TURNING)[0] == 0
    assert run("upright", path, "-o", tmp_path / "out", *TURNING)[0] == 0
    for made in (tmp_path / "b.png", tmp_path / "out" / "a.png"):
        assert made.stat().st_mtime == 1e9 and made.stat().st_mode & 0o777 == 0o640


def test_a_backup_keeps_the_original_and_is_never_replaced(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    path = face(tmp_path / "a.png")
    before = path.read_bytes()
    assert run("upright", path, "--in-place", "--backup", *TURNING)[0] == 0
    assert path.read_bytes() != before and (tmp_path / "a.png.orig").read_bytes() == before
    face(path, 80)
    changed = path.read_bytes()
    code, _, err = run("upright", path, "--in-place", "--backup", *TURNING)
    assert code == 1 and "The backup a.png.orig already exists." in err
    assert path.read_bytes() == changed and (tmp_path / "a.png.orig").read_bytes() == before


def test_read_only_files_are_replaced_only_by_force(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    path = face(tmp_path / "a.png")
    before = path.read_bytes()
    path.chmod(0o444)
    code, _, err = run("upright", path, "--in-place", *TURNING)
    assert code == 1 and "It is read-only." in err and path.read_bytes() == before
    assert run("upright", path, "--in-place", "--force", *TURNING)[0] == 0
    assert path.read_bytes() != before and path.stat().st_mode & 0o777 == 0o444


# --- words ---


def test_explain_says_what_was_seen_and_why(run: Callable[..., Said], tmp_path: Path) -> None:
    face(tmp_path / "a.png", 40, expand=True)
    before = sorted(tmp_path.iterdir())
    code, out, _ = run("upright", "--explain", tmp_path / "a.png", *TURNING)
    assert code == 0 and sorted(tmp_path.iterdir()) == before
    assert "The model ring.lfw estimates a rotation of" in out
    assert "It is a rectangle on a plain canvas, turned by" in out
    assert "by the angle of its rectangle, since" in out
    code, _, err = run("upright", "--explain", tmp_path / "a.png", "--json")
    assert code == 2 and "--explain prints sentences" in err


def test_the_original_rectangle_comes_back(run: Callable[..., Said], tmp_path: Path) -> None:
    face(tmp_path / "in" / "a.png", 40, expand=True)
    options = ("upright", tmp_path / "in", "--overwrite", "--json", *TURNING)
    found = records(run(*options, "-o", tmp_path / "out")[1])["a.png"]
    assert found["applied"]["from"] == "frame"  # type: ignore[index]
    with Image.open(tmp_path / "out" / "a.png") as made:
        assert np.abs(np.subtract(made.size, (160, 120))).max() <= 4
    for option in ("--crop", "--same-size", "--expand"):
        assert run(*options, "-o", tmp_path / option, option)[0] == 0
    sizes = [
        images.read(tmp_path / option / "a.png").image.size
        for option in ("--crop", "--same-size", "--expand")
    ]
    assert max(sizes[0]) <= 162 and sizes[1] == images.read(tmp_path / "in" / "a.png").image.size
    assert max(sizes[2]) <= 162  # nothing but filled corners lies outside


def test_colours_can_be_switched_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from radialbeams.cli import terminal

    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with terminal.progress_bar(2, "turning") as bar:
        bar.show(1, "turning")
    assert "\x1b[3" not in capsys.readouterr().err


# --- corrections ---


def test_corrected_angles_are_applied_to_their_files_only(
    run: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "b.png", "c.png"):
        face(tmp_path / "in" / name, 0)
    assert run("upright", "in", "-o", "out", *TURNING)[0] == 0
    one, other = {"path": "in/a.png", "angle_ccw": 90}, {"path": "in/b.png", "angle_ccw": None}
    Path("fix.json").write_text(json.dumps({"corrections": [one, other]}))
    command = ("upright", "in", "-o", "out", "--corrections", "fix.json", "--json", *TURNING)
    _, out, err = run(*command)
    assert {line["action"] for line in records(out).values()} == {"exists"}
    assert "outputs that exist were not corrected: add --overwrite" in err and "only if" not in err
    code, out, err = run(*command, "--overwrite")
    assert "add --overwrite" not in err
    found = records(out)
    assert code == 0 and list(found) == ["a.png", "b.png"]
    assert found["a.png"]["applied"]["angle_ccw"] == 270  # type: ignore[index]
    before, after = (images.read(Path(name) / "a.png").image for name in ("in", "out"))
    assert after.tobytes() == images.turn(before, -90).tobytes()
    assert Path("out/b.png").read_bytes() == Path("in/b.png").read_bytes()


def test_corrections_in_place_are_said_to_be_for_one_run(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    face(tmp_path / "a.png", 0)
    fix = {"corrections": [{"path": str(tmp_path / "a.png"), "angle_ccw": 90}]}
    (tmp_path / "fix.json").write_text(json.dumps(fix))
    command = ("upright", tmp_path, "--corrections", tmp_path / "fix.json", *TURNING)
    assert "turns them again" not in run(*command, "-o", tmp_path / "out")[2]
    assert "turns them again" not in run(*command, "--in-place", "--dry-run")[2]
    code, _, err = run(*command, "--in-place")
    assert code == 0 and "the corrections are applied; the same list turns them again" in err


def test_the_report_on_corrections_does_not_replace_the_report_on_all_files(
    run: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "b.png"):
        face(tmp_path / "in" / name, 0)
    command = ("upright", "in", "-o", "out", "--report", "r.html", *TURNING)
    assert run(*command)[0] == 0
    whole = Path("r.html").read_bytes()
    assert b"their report gets a new name, and this page stays" in whole
    fix = {"corrections": [{"path": "in/a.png", "angle_ccw": 90}]}
    Path("fix.json").write_text(json.dumps(fix))
    # The command that the page asks for.
    code, _, err = run(*command, "--corrections", "fix.json", "--overwrite")
    assert code == 0 and "r.html exists; the report is r-2.html." in err
    assert Path("r.html").read_bytes() == whole
    assert "1 file" in Path("r-2.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not a list of corrections"),
        ('{"corrections": [{"path": "a.png"}]}', "corrections (angle_ccw is missing). Expected"),
        ('{"corrections": [{"path": "a.png", "angle_ccw": "left"}]}', "an angle in degrees"),
        ('{"corrections": [{"path": "", "angle_ccw": 1}]}', "expected a path"),
        (
            '{"corrections": [{"path": "gone.png", "angle_ccw": 1}]}',
            "1 of 1 corrected files is not among",
        ),
    ],
)
def test_corrections_that_make_no_sense_are_refused(
    run: Callable[..., Said], tmp_path: Path, content: str, words: str
) -> None:
    face(tmp_path / "a.png")
    (tmp_path / "fix.json").write_text(content)
    code, _, err = run("upright", tmp_path / "a.png", "--corrections", tmp_path / "fix.json")
    assert code == 2 and words in err and "--corrections" in err
