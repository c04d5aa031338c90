"""The command line: data on standard output, talk on standard error, 0, 1 or 2 at the end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image

from radialbeams import __version__, zoo
from radialbeams.batch import JobSettings
from radialbeams.batch.journal import Journal
from radialbeams.cards import to_json
from radialbeams.cli import main, terminal
from radialbeams.demo import PICTURES
from radialbeams.training.data import ImageSet

VERBS = ("upright", "angle", "demo", "models", "train", "evaluate", "leaks", "export", "reproduce")
EVALUATION = {
    "model", "data", "protocol", "split", "seeds", "n", "mean", "median", "p95",
    "paper_equivalent", "within_5", "within_10", "flips", "groups",
}  # fmt: skip

Said = tuple[int, str, str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*arguments: object) -> Said:
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def refused(said: Said) -> str:
    """Failed with one sentence on standard error, and nothing that a pipe would take for data."""
    code, out, err = said
    assert (code, out) == (1, "")
    sentence = err.splitlines()[-1]
    assert sentence.startswith("radialbeams: ")
    assert "Traceback" not in err
    return sentence


def test_it_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"radialbeams {__version__}\n"


def test_help_lists_the_verbs(run: Callable[..., Said]) -> None:
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    for verb in VERBS:
        assert f" {verb} " in out
    assert "..." not in out.split("Commands:")[1]  # no sentence is cut off


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(run: Callable[..., Said], verb: str) -> None:
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert f"radialbeams {verb}" in out


@pytest.mark.parametrize("arguments", [("nonsense",), ("train",), ("evaluate", "bic.lfw"), ()])
def test_wrong_usage_is_two(run: Callable[..., Said], arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0] == 2


def test_the_exit_codes_are_explained(run: Callable[..., Said]) -> None:
    for arguments in (("--help",), ("upright", "--help"), ("angle", "--help"), ("train", "-h")):
        words = " ".join(run(*arguments)[1].split())
        assert "0 all done, 1 the command or some files failed, 2 wrong usage" in words


# --- angle ---


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    """A face turned three ways, and noise that has no up."""
    folder = tmp_path / "faces"
    folder.mkdir()
    with Image.open(PICTURES / "astronaut.webp") as picture:
        upright = picture.convert("RGB").resize((160, 160), Image.Resampling.LANCZOS)
    for turn in (0, 2, 40, 140):
        turned = upright.rotate(turn, Image.Resampling.BICUBIC)
        turned.save(folder / f"{turn}.jpg", quality=95)
    Image.effect_noise((160, 160), 100).convert("RGB").save(folder / "noise.png")
    return folder


FACES = ("--model", "ring.lfw", "--workers", 1)
FOUND = (
    *("angle_ccw", "angle_signed", "confidence", "symmetry", "quarter", "quarter_confidence"),
    *("kind", "model"),
)
DECIDED = ("reason", "measure", "value", "threshold", "frame_ccw", "applied")
TURNING = (*FACES, "--min-confidence", 0.5)


def lines(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_angle_prints_one_object_a_line_in_order(run: Callable[..., Said], faces: Path) -> None:
    (faces / "99.jpg").write_bytes(b"no picture")
    code, out, err = run("angle", faces, "--json", *FACES)
    found = lines(out)
    assert code == 1
    assert [Path(str(one["path"])).name for one in found] == [
        "0.jpg", "2.jpg", "40.jpg", "99.jpg", "140.jpg", "noise.png"
    ]  # fmt: skip
    assert found[3].keys() == {"path", "error"}
    assert err == f"radialbeams: {faces / '99.jpg'}: {found[3]['error']}\n"
    for one in found[:3]:
        assert list(one) == ["path", *FOUND]
        assert one["model"] == "ring.lfw" and one["symmetry"] == 1
    assert float(str(found[2]["angle_ccw"])) == pytest.approx(40, abs=8)
    assert round(float(str(found[2]["angle_ccw"])), 2) == found[2]["angle_ccw"]


def test_angle_prints_a_table_for_people(run: Callable[..., Said], faces: Path) -> None:
    code, out, err = run("angle", faces / "40.jpg", *FACES)
    assert (code, err) == (0, "")
    header, row = out.splitlines()
    assert header.split() == ["angle", "confidence", "symmetry", "file"]
    assert row.endswith("40.jpg") and "°" in row and "%" in row


def test_nothing_to_look_at_is_refused(run: Callable[..., Said], tmp_path: Path) -> None:
    assert "the given paths have no images" in refused(run("angle", tmp_path, "--json", *FACES))


def through_a_pipe(data: bytes, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from radialbeams.cli import run; run()"]
    return subprocess.run(
        [*command, *map(str, arguments)], input=data, capture_output=True, timeout=240
    )


def test_pipes(faces: Path, tmp_path: Path) -> None:
    data = (faces / "140.jpg").read_bytes()
    said = through_a_pipe(data, "angle", "-", "--json", "--model", "ring.lfw")
    assert json.loads(said.stdout)["path"] == "-"
    said = through_a_pipe(data, "upright", "-", "--crop", *TURNING)
    assert (said.returncode, said.stderr) == (0, b"")
    assert said.stdout.startswith(b"\xff\xd8") and said.stdout != data
    said = through_a_pipe(data, "upright", "-", "-o", tmp_path / "folder")
    assert (said.returncode, said.stdout) == (2, b"")
    said = through_a_pipe(b"nothing", "upright", "-")
    assert (said.returncode, said.stdout) == (1, b"")
    assert said.stderr.startswith(b"radialbeams: -: ") and said.stderr.count(b"\n") == 1


# --- upright ---


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_upright_turns_and_leaves_and_says_which(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    before, out = contents(faces), tmp_path / "out"
    options = ("-o", out, "--report", tmp_path / "sheet.html", "--min-angle", 10)
    code, text, err = run("upright", faces, *options, "--json", *TURNING)
    found = {Path(str(one["path"])).name: one for one in lines(text)}
    assert code == 0
    summary, thresholds = err.splitlines()
    assert summary.startswith("5 files in ")
    assert "50% sure, and by another angle only if that is 50% sure and at least 10°; " in err
    about = zoo.find("ring.lfw").card.summary.rstrip(".")
    assert thresholds.endswith(f"; model ring.lfw ({about})")
    for one in found.values():
        assert list(one) == ["path", "out", *FOUND, "action", *DECIDED]
    assert {name: one["action"] for name, one in found.items()} == {
        "0.jpg": "left",
        "2.jpg": "left",
        "40.jpg": "turned",
        "140.jpg": "turned",
        "noise.png": "unsure",
    }
    assert {name: one["reason"] for name, one in found.items()} == {
        "0.jpg": "upright already",
        "2.jpg": "upright already",
        "40.jpg": None,
        "140.jpg": None,
        "noise.png": "no up",
    }
    after = contents(out)
    assert contents(faces) == before
    assert sorted(after) == sorted(before)
    for name in ("0.jpg", "2.jpg", "noise.png"):
        assert after[name] == before[name]  # left alone, to the byte
    assert run("angle", out / "140.jpg", "--json", *FACES)[0] == 0
    assert (tmp_path / "sheet.html").read_text().count("<li ") == 5


def test_upright_never_overwrites_without_the_option(run: Callable[..., Said], faces: Path) -> None:
    mine = faces / "40-upright.jpg"
    mine.write_bytes(b"mine")
    code, out, err = run("upright", faces / "40.jpg", "--json", *TURNING)
    assert (code, lines(out)[0]["action"]) == (0, "exists")
    assert "skipped, the output exists" in err
    assert mine.read_bytes() == b"mine"
    assert run("upright", faces / "40.jpg", "--overwrite", *TURNING)[:2] == (0, "")
    assert mine.read_bytes().startswith(b"\xff\xd8")
    assert sorted(contents(faces)) == sorted(
        ["0.jpg", "2.jpg", "40.jpg", "140.jpg", "noise.png", "40-upright.jpg"]
    )


def test_a_dry_run_writes_nothing(run: Callable[..., Said], faces: Path, tmp_path: Path) -> None:
    before = contents(tmp_path)
    code, out, err = run("upright", faces, "-o", tmp_path / "out", "--dry-run", "--json", *TURNING)
    assert (code, contents(tmp_path)) == (0, before)
    assert not (tmp_path / "out").exists()
    assert "dry run" in err
    assert [one["action"] for one in lines(out)].count("turned") >= 2


def test_in_place_is_explicit_or_not_done(run: Callable[..., Said], faces: Path) -> None:
    before = contents(faces)
    assert run("upright", faces, "--in-place", "--snap", 90, *TURNING)[0] == 0
    after = contents(faces)
    assert [name for name in before if before[name] != after[name]] == ["140.jpg"]
    scan = before["140.jpg"].index(b"\xff\xda")
    assert after["140.jpg"].endswith(before["140.jpg"][scan:])  # by its tag, without loss


def test_one_file_to_one_file_of_another_format(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    options = ("-o", tmp_path / "a.png", "--same-size", "--fill", "white", *TURNING)
    assert run("upright", faces / "40.jpg", *options)[0] == 0
    with Image.open(tmp_path / "a.png") as picture:
        assert (picture.format, picture.size) == ("PNG", (160, 160))


def test_an_unfinished_run_with_other_settings_is_refused(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    with closing(Journal(tmp_path / "out", {"fill": "white"})) as journal:
        journal.fix_plan([])
    code, out, err = run("upright", faces, "-o", tmp_path / "out", *TURNING)
    assert (code, out) == (2, "")
    assert "fill was white, is None" in " ".join(err.split()) and "--fresh" in err
    assert run("upright", faces, "-o", tmp_path / "out", "--fresh", *TURNING)[0] == 0
    assert len(contents(tmp_path / "out")) == 5


@pytest.mark.parametrize(
    "options",
    [
        ("--crop", "--expand"),
        ("--fill", "nonsense"),
        ("--report", "sheet.txt"),
        ("--report", "nowhere/sheet.html"),
        ("--snap", "45"),
        ("--exif", "--format", "png"),
        ("--in-place", "--first-frame"),
        ("-o", "out.jpg"),
        ("--format", "heic"),
        ("--in-place", "-o", "out"),
        ("--in-place", "--format", "png"),
        ("--min-confidence", "2"),
        ("--workers", "0"),
        ("--address", "10.0.0.1:6379"),
        ("--column", "image"),
        ("--engine", "ray"),
        ("--engine", "ray", "-o", "out", "--dry-run"),
        ("--engine", "ray", "-o", "out", "--report", "sheet.html"),
        ("--engine", "slurm", "-o", "out"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    run: Callable[..., Said], faces: Path, options: tuple[str, ...]
) -> None:
    before = contents(faces)
    code, out, _ = run("upright", faces, *options)
    assert (code, out, contents(faces)) == (2, "", before)


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed here")
def test_without_ray_the_engine_names_its_extra(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    code, out, err = run("upright", faces, "-o", tmp_path / "out", "--engine", "ray")
    assert (code, out) == (1, "")
    assert 'pip install -c constraints.txt -e ".[ray]"' in err
    assert not (tmp_path / "out").exists()


def test_thresholds_are_the_cards_unless_given(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    shipped = zoo.find("ring.lfw")
    shutil.copy(shipped.onnx, tmp_path / "mine.onnx")
    for said, words in (
        (
            {},
            "98% sure, and by another angle only if that is 50% sure and at least 1°",
        ),
        (
            {"abstain": {"confidence": 0.25, "angle": 7, "quarter": 0.9}},
            "90% sure, and by another angle only if that is 25% sure and at least 7°",
        ),
    ):
        card = {name: value for name, value in to_json(shipped.card).items() if name != "abstain"}
        (tmp_path / "mine.json").write_text(json.dumps({**card, **said}))
        options = ("--dry-run", "--model", tmp_path / "mine.onnx", "--workers", 1)
        assert words in run("upright", faces / "noise.png", *options)[2]
        err = run("upright", faces / "noise.png", *options, "--min-confidence", 0.97)[2]
        assert "% sure, and by another angle only if that is 97% sure" in err
    limit = {"abstain": {"confidence": 0.25, "angle": 7, "upright": 0.02}}
    (tmp_path / "mine.json").write_text(json.dumps({**card, **limit}))
    err = run("upright", faces / "noise.png", *options, "--snap", "none")[2]
    assert "25% sure and at least 7°, and at most 2% likely to be upright already" in err
    err = run("upright", faces / "noise.png", *options, "--snap", "90")[2]
    assert "by a quarter only if that is 98% sure; model " in err


def test_thresholds_are_named_only_if_something_was_left_alone(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    err = run("upright", faces / "40.jpg", "-o", tmp_path / "out", *TURNING)[2]
    assert "1 turned" in err and "only if" not in err
    assert "only if" not in run("upright", tmp_path / "gone.jpg", *TURNING)[2]
    assert "only if" in run("upright", faces / "noise.png", "--dry-run", *TURNING)[2]


def test_counts_are_in_the_right_number() -> None:
    counts = Counter({"document without a clear quarter": 2, "unsure": 1})
    job = JobSettings("general", turns=True, writes=True)
    said = terminal.summary(counts, 1.0, job)
    assert said == "3 files in 1.0 s: 1 left, unsure; 2 left, documents without a clear quarter"
    between = terminal.summary(Counter({terminal.BETWEEN: 2}), 1.0, job)
    assert between == "2 files in 1.0 s: 2 left, fill their canvas and are at no quarter turn"
    kinds = ("broken links", "pipes and devices", "links to folders", "hidden folders")
    (line,) = terminal.left_out(Counter(kinds))
    assert line == (
        "4 files not read (1 broken link, 1 pipe or device, 1 link to a folder, 1 hidden folder)"
    )


def test_pages_of_a_pdf_have_to_be_saved_as_images(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    shutil.copy(faces / "40.jpg", tmp_path)
    assert "pdftoppm" not in run("angle", tmp_path)[2]
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.4")
    assert "1 file not read (1 .pdf)" in (err := run("angle", tmp_path)[2])
    assert "save them as images first: pdftoppm -r 200 -png FILE.pdf PAGE" in err
    err = run("angle", tmp_path / "scan.pdf")[2]
    assert "It is not an image" in err and "(to turn the pages of a PDF, save them as" in err
    assert "pdftoppm" not in run("angle", tmp_path / "gone.pdf")[2]


@pytest.mark.parametrize("verb", ["upright", "angle"])
def test_a_folder_without_images_gives_one_error(
    run: Callable[..., Said], tmp_path: Path, verb: str
) -> None:
    (tmp_path / "notes.txt").write_text("no image")
    code, _, err = run(verb, tmp_path)
    assert code == 1
    assert "the given paths have no images. Check the paths." in err and "0 files" not in err


def test_a_report_is_overwritten_only_on_request(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    report = tmp_path / "sheet.html"
    report.write_text("mine")
    options = ("upright", faces / "40.jpg", "-o", tmp_path / "out", "--report", report, *TURNING)
    code, _, err = run(*options)
    assert (code, report.read_text()) == (0, "mine")
    assert "sheet.html exists; the report is" in err
    assert (tmp_path / "sheet-2.html").read_text().startswith("<!doctype html>")
    assert run(*options, "--overwrite")[0] == 0
    assert report.read_text().startswith("<!doctype html>")


def test_what_failed_is_tried_again_and_gets_a_report_of_its_own(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    good = (faces / "40.jpg").read_bytes()
    (faces / "40.jpg").write_bytes(good[:100])
    options = ("upright", faces, "-o", tmp_path / "out", "--report", tmp_path / "r.html", *TURNING)
    assert run(*options)[0] == 1
    (faces / "40.jpg").write_bytes(good)
    assert run(*options)[0] == 0
    assert (tmp_path / "out" / "40.jpg").is_file() and (tmp_path / "r-2.html").is_file()


def test_a_report_that_is_a_folder_is_refused_before_any_work(
    run: Callable[..., Said], faces: Path, tmp_path: Path
) -> None:
    (tmp_path / "r.html").mkdir()
    options = ("-o", tmp_path / "out", "--report", tmp_path / "r.html", "--overwrite")
    code, _, err = run("upright", faces, *options, *TURNING)
    assert code == 2 and "is a folder" in err and not (tmp_path / "out").exists()


def test_no_file_is_reported_twice(run: Callable[..., Said], faces: Path) -> None:
    _, out, _ = run("angle", faces, *sorted(faces.glob("*.jpg")), "--json", "--model", "ring.lfw")
    paths = [line["path"] for line in lines(out)]
    assert len(paths) == len(set(paths)) > 0


def test_the_second_picture_of_a_camera_is_not_lost_in_place(
    run: Callable[..., Said], faces: Path
) -> None:
    face = Image.open(faces / "40.jpg")
    face.save(faces / "two.jpg", "MPO", save_all=True, append_images=[face.reduce(2)])
    before = (faces / "two.jpg").read_bytes()
    code, _, err = run("upright", faces / "two.jpg", "--in-place", *TURNING)
    assert code == 1 and "only the first would remain" in err
    assert (faces / "two.jpg").read_bytes() == before


def test_a_quarter_turn_of_zero_is_reported_as_such(run: Callable[..., Said], faces: Path) -> None:
    err = run("upright", faces / "40.jpg", "--snap", 90, "--dry-run", *TURNING)[2]
    assert "1 left, the nearest quarter turn is 0°" in err


def test_what_is_skipped_is_reported(run: Callable[..., Said], faces: Path) -> None:
    (faces / "a.heic").touch()
    (faces / "gone.jpg").symlink_to("nowhere.jpg")
    shutil.copy(faces / "40.jpg", faces / ".40.jpg")
    shutil.copy(faces / "40.jpg", faces / "40-upright.jpg")
    _, out, err = run("upright", faces, "--dry-run", "--json", *TURNING)
    assert len(lines(out)) == 5
    assert "3 files not read (1 hidden, 1 .heic, 1 broken link)" in err
    assert "1 file not read: outputs of this command" in err
    assert "3 files not read" in run("angle", faces, "--json", *FACES)[2]


def test_a_terminal_that_knows_few_letters_gets_those(faces: Path) -> None:
    command = [sys.executable, "-c", "from radialbeams.cli import run; run()", "angle"]
    said = subprocess.run(
        [*command, str(faces / "40.jpg"), *map(str, FACES)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=240,
    )
    assert (said.returncode, said.stderr) == (0, b"")
    assert b"?" in said.stdout


def test_runs_into_one_folder_wait_for_each_other(faces: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from radialbeams.cli import run; run()", "upright"]
    started = [
        subprocess.Popen(
            [*command, str(path), "-o", str(tmp_path / "out"), *map(str, TURNING)],
            stderr=subprocess.PIPE,
        )
        for path in sorted(faces.iterdir())[:3]
    ]
    said = [process.communicate(timeout=240)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert len(contents(tmp_path / "out")) == 3


# --- models, demo ---


def test_models_prints_one_object_a_line(run: Callable[..., Said]) -> None:
    code, out, err = run("models", "--json")
    assert (code, err) == (0, "")
    cards = [json.loads(line) for line in out.splitlines()]
    assert [card["name"] for card in cards] == zoo.names()
    for card in cards:
        assert card.keys() >= {"data", "licence", "metrics"}


def test_the_columns_of_models_are_apart(run: Callable[..., Said]) -> None:
    out = run("models")[1]
    titles = next(line for line in out.splitlines() if line.startswith("model "))
    column = titles.index("measured")
    for name in zoo.names():
        (line,) = (line for line in out.splitlines() if line.split(" ")[0] == name)
        assert line[column - 1] == " " != line[column]


def test_models_prints_data_errors_and_licence(run: Callable[..., Said]) -> None:
    code, out, _ = run("models")
    assert code == 0
    for name in zoo.names():
        assert name in out
        assert zoo.find(name).card.licence in out
    assert "paper-equivalent" in out and "median" in out


@pytest.mark.slow
def test_the_demo_writes_a_sheet_and_overwrites_none(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    code, out, err = run("demo", "-o", tmp_path / "sheet.png")
    assert (code, err) == (0, "")
    assert f"contact sheet: {tmp_path / 'sheet.png'}" in out
    first = (tmp_path / "sheet.png").read_bytes()
    (tmp_path / "sheet-2.png").write_text("mine")
    assert run("demo", "--out", tmp_path / "sheet.png")[0] == 0
    assert (tmp_path / "sheet.png").read_bytes() == first
    assert (tmp_path / "sheet-2.png").read_text() == "mine"
    assert Image.open(tmp_path / "sheet-3.png").size == Image.open(tmp_path / "sheet.png").size


# --- evaluate ---


def test_evaluate_prints_exactly_one_object(
    run: Callable[..., Said], finished_run: Path, photo_folder: Path
) -> None:
    options = ("--protocol", "paper", "--split", "test", "--seeds", 2, "--devices", "cpu")
    code, out, _ = run("evaluate", finished_run, photo_folder, *options, "--json")
    assert code == 0
    assert out.count("\n") == 1
    figures = json.loads(out)
    assert figures.keys() >= EVALUATION
    assert (figures["protocol"], figures["split"], figures["seeds"]) == ("paper", "test", 2)
    assert all(0 <= figures[name] <= 1 for name in ("within_5", "within_10", "flips"))
    assert figures["groups"] == {}


def test_evaluate_measures_a_shipped_model_on_real_images(
    run: Callable[..., Said], real: Callable[..., ImageSet]
) -> None:
    real("coil100", split="test", limit=1)
    options = ("--protocol", "paper", "--limit", 8, "--seeds", 1, "--group", "object")
    code, out, _ = run("evaluate", "bic.coil100", "coil100", *options, "--json")
    figures = json.loads(out)
    assert (code, figures["model"], figures["n"]) == (0, "bic.coil100", 8)
    assert figures["mean"] < 5
    assert figures["groups"] and all(name.startswith("obj") for name in figures["groups"])


def test_evaluate_prints_a_table_for_people(
    run: Callable[..., Said], finished_run: Path, photo_folder: Path
) -> None:
    code, out, _ = run("evaluate", finished_run, photo_folder, "--seeds", 1, "--devices", "cpu")
    assert code == 0
    for name in ("mean", "median", "p95", "paper-equivalent", "within 5", "within 10", "flips"):
        assert name in out
    images = out.splitlines()[0].split(" views of ")[1].split()[0]
    assert f": {images} views of {images} image" in out
    two = run("evaluate", finished_run, photo_folder, "--seeds", 2, "--devices", "cpu")[1]
    assert f": {2 * int(images)} views of {images} image" in two


# --- what is refused ---


def test_an_unknown_model_is_refused_with_the_names(run: Callable[..., Said]) -> None:
    sentence = refused(run("evaluate", "bic.nope", "coil100", "--json"))
    assert "'bic.nope'" in sentence
    assert all(name in sentence for name in zoo.names())


def test_unknown_data_is_refused_with_the_names(run: Callable[..., Said]) -> None:
    sentence = refused(run("evaluate", "bic.coil100", "nope", "--json"))
    assert "'nope'" in sentence and "coil100" in sentence and "lfw" in sentence


def test_data_that_is_not_there_is_refused_with_its_source(
    run: Callable[..., Said], tmp_path: Path
) -> None:
    said = run("evaluate", "bic.coil100", "coil100", "--data", tmp_path, "--json")
    assert "https://cave.cs.columbia.edu" in refused(said)


def test_training_on_nothing_is_refused(run: Callable[..., Said], tmp_path: Path) -> None:
    assert "nowhere" in refused(run("train", tmp_path / "nowhere", "--out", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_another_recipe_in_a_run_is_refused(
    run: Callable[..., Said], finished_run: Path, photo_folder: Path
) -> None:
    said = run(
        "train", photo_folder, "--out", finished_run, "--decoder", "lstm", "--size", 28, "--seed", 5
    )
    assert "holds a run with another recipe" in refused(said)


def test_a_run_that_diverges_is_refused_with_a_sentence(
    run: Callable[..., Said], photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(*_: object, **__: object) -> None:
        raise FloatingPointError("The loss is nan at step 4. Lower the learning rate.")

    monkeypatch.setattr("radialbeams.training.runs.complete", diverge)
    options = ("--decoder", "lstm", "--size", 28)
    said = run("train", photo_folder, "--out", tmp_path / "run", *options)
    assert "Lower the learning rate" in refused(said)


@pytest.mark.parametrize(
    ("option", "known"), [("--snap", "'auto', '90', 'none'"), ("--format", "jpeg")]
)
def test_an_unknown_choice_is_answered_with_the_known_ones(
    run: Callable[..., Said], faces: Path, tmp_path: Path, option: str, known: str
) -> None:
    code, _, err = run("upright", faces, "-o", tmp_path / "out", option, "foo")
    words = " ".join(err.split())
    assert code == 2 and f"Invalid value for '{option}': 'foo' is not one of" in words
    assert known in words


def test_export_overwrites_nothing(
    run: Callable[..., Said], finished_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.onnx").write_text("mine")
    assert "already exists" in refused(run("export", finished_run, tmp_path / "mine.onnx"))
    assert (tmp_path / "mine.onnx").read_text() == "mine"
    (tmp_path / "other.json").write_text("mine")
    assert "other.json already exists" in refused(
        run("export", finished_run, tmp_path / "other.onnx")
    )
    assert (tmp_path / "other.json").read_text() == "mine"
    assert "ends in .onnx" in refused(run("export", finished_run, tmp_path / "page.html"))


def test_a_gpu_that_is_not_there_is_refused_with_the_right_option(
    run: Callable[..., Said],
    finished_run: Path,
    photo_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    said = run("evaluate", finished_run, photo_folder, "--devices", "cuda")
    assert "--devices cpu" in refused(said)


# --- the light install ---

# A machine on which torch was never installed.
WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "safetensors", "onnx", "onnxscript"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name in ("torch", "safetensors") else found(name, package)
)
from radialbeams.cli import main
codes = [main(line.split()) for line in sys.argv[1:]]
assert "torch" not in sys.modules
print(codes)
"""


def without_torch(*lines: str) -> tuple[list[int], str, str]:
    command = [sys.executable, "-c", WITHOUT_TORCH, *lines]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    *out, codes = done.stdout.splitlines()
    return json.loads(codes), "\n".join(out), done.stderr


def test_without_torch_the_heavy_verbs_name_the_extra(tmp_path: Path) -> None:
    codes, out, err = without_torch(
        f"train nowhere --out {tmp_path}/run",
        "evaluate bic.coil100 coil100 --json",
        f"export bic.coil100 {tmp_path}/x.onnx",
    )
    assert (codes, out) == ([1, 1, 1], "")
    for verb, sentence in zip(("train", "evaluate", "export"), err.splitlines(), strict=True):
        assert sentence.startswith(f"radialbeams: `radialbeams {verb}` needs torch")
        assert 'pip install -c constraints.txt -e ".[train]"' in sentence
    assert list(tmp_path.iterdir()) == []


def test_without_torch_the_light_verbs_work(tmp_path: Path) -> None:
    codes, out, err = without_torch("models --json", f"demo --out {tmp_path}/sheet.png", "--help")
    assert (codes, err) == ([0, 0, 0], "")
    assert (tmp_path / "sheet.png").is_file()
    assert '"bic.coil100"' in out


@pytest.mark.parametrize(
    "options", [("--group", "colour"), ("--jpeg", "900"), ("--protocol", "mine")]
)
def test_an_option_that_means_nothing_is_wrong_usage(
    run: Callable[..., Said], finished_run: Path, photo_folder: Path, options: tuple[str, str]
) -> None:
    assert run("evaluate", finished_run, photo_folder, *options)[0] == 2


def test_a_device_that_does_not_exist_is_refused_with_those_that_do(
    run: Callable[..., Said], finished_run: Path, photo_folder: Path
) -> None:
    said = run("evaluate", finished_run, photo_folder, "--devices", "tpu")
    assert "auto, cpu or cuda as a device; got 'tpu'" in refused(said)
