"""The plan: which files are taken, in which order, and where each output goes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import pytest

from radialbeams.batch import OUTPUTS, Plan, plan_for
from radialbeams.batch.plan import BATCH, Item, PlanError, batches
from radialbeams.batch.walk import SkippedFiles


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def planned(plan: Plan, folder: Path) -> list[tuple[str, str | None]]:
    """Below `folder`, as they come."""
    return [
        (os.path.relpath(item.path, folder), item.out and os.path.relpath(item.out, folder))
        for item in plan.items()
    ]


def outs(plan: Plan, folder: Path) -> list[str | None]:
    return [out for _, out in planned(plan, folder)]


def test_a_folder_is_taken_in_natural_order_without_what_is_hidden(tmp_path: Path) -> None:
    touch(tmp_path, "in/10.jpg", "in/2.JPG", "in/b/1.png", "in/a.webp", "in/notes.txt")
    touch(tmp_path, "in/.hidden.jpg", "in/.cache/3.jpg")
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "out")
    assert planned(plan, tmp_path) == [
        ("in/2.JPG", "out/2.JPG"),
        ("in/10.jpg", "out/10.jpg"),
        ("in/a.webp", "out/a.webp"),
        ("in/b/1.png", "out/b/1.png"),
    ]


def test_a_file_that_is_named_is_always_tried(tmp_path: Path) -> None:
    touch(tmp_path, "notes.txt")
    names = (str(tmp_path / "notes.txt"), str(tmp_path / "missing.jpg"))
    assert [item.path for item in Plan(names, writes=False).items()] == list(names)


def test_equal_names_never_collide(tmp_path: Path) -> None:
    touch(tmp_path, "a/x.jpg", "a/X.JPG", "a/x-2.jpg", "a/x.png")
    plan = Plan((str(tmp_path / "a"),), folder=tmp_path / "out", format="jpeg")
    found = outs(plan, tmp_path)
    assert len({str(out).casefold() for out in found}) == 4
    assert found == outs(plan, tmp_path)


def test_several_inputs_keep_their_places_below_the_folder_that_they_share(tmp_path: Path) -> None:
    touch(tmp_path, "s1/a.jpg", "s2/a.jpg", "s2/deep/a.jpg")
    one, two = str(tmp_path / "s1"), str(tmp_path / "s2")
    out = tmp_path / "out"
    assert outs(Plan((two,), folder=out), tmp_path) == ["out/a.jpg", "out/deep/a.jpg"]
    both = ["out/s1/a.jpg", "out/s2/a.jpg", "out/s2/deep/a.jpg"]
    assert outs(Plan((one, two), folder=out), tmp_path) == both
    files = (f"{one}/a.jpg", f"{two}/a.jpg")
    assert outs(Plan(files, folder=out), tmp_path) == both[:2]


def test_a_file_named_twice_is_taken_once(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.jpg", "in/b/c.jpg")
    sources = (str(tmp_path / "in"), str(tmp_path / "in" / "b"), str(tmp_path / "in" / "a.jpg"))
    found = planned(Plan(sources, folder=tmp_path / "out"), tmp_path)
    assert found == [("in/a.jpg", "out/a.jpg"), ("in/b/c.jpg", "out/b/c.jpg")]


def test_no_output_is_an_input(tmp_path: Path) -> None:
    touch(tmp_path, "src/sub/x.jpg", "src/sub/sub/x.jpg", "scan.dat", "scan-2.dat")
    deep = Plan((str(tmp_path / "src" / "sub"),), folder=tmp_path / "src")
    with pytest.raises(PlanError, match=r"src/sub/x.jpg, where .* is one of the inputs"):
        list(deep.items())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "scan.dat").hardlink_to(tmp_path / "scan-2.dat")
    files = (str(tmp_path / "scan.dat"), str(tmp_path / "scan-2.dat"))
    with pytest.raises(PlanError, match="one of the inputs"):
        list(Plan(files, folder=tmp_path / "out").items())


def test_an_output_that_is_named_itself_is_not_overwritten(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg", "a-upright.jpg")
    named = [str(tmp_path / "a.jpg"), str(tmp_path / "a-upright.jpg")]
    assert len(list(plan_for(named, None).items())) == 1
    with pytest.raises(PlanError, match="one of the inputs"):
        list(plan_for(named, None, overwrite=True).items())
    assert len(list(plan_for([str(tmp_path)], None, overwrite=True).items())) == 1


def test_what_is_no_image_is_counted(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.jpg", "in/b.HEIC", "in/c.heic", "in/notes", "in/.hidden", "in/d/e.txt")
    (tmp_path / "in" / "gone.jpg").symlink_to("nowhere.jpg")
    (tmp_path / "in" / "linked").symlink_to("d")
    os.mkfifo(tmp_path / "in" / "pipe.jpg")
    skipped = SkippedFiles()
    assert len(list(Plan((str(tmp_path / "in"),), writes=False).items(skipped))) == 1
    assert skipped.left_out == {
        ".heic": 2,
        ".txt": 1,
        "without an ending": 1,
        "broken links": 1,
        "links to folders": 1,
        "pipes and devices": 1,
        "hidden": 1,
    }


def test_outputs_beside_their_originals_are_not_turned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path, "a.jpg", "a-upright.jpg", "a-upright-2.png", "cat.txt", "cat-upright.jpg")
    monkeypatch.chdir(tmp_path)
    named = ("a.jpg", "a-upright.jpg", "a-upright-2.png", "cat-upright.jpg")
    for sources in (named, (".",)):
        skipped = SkippedFiles()
        found = [os.path.normpath(item.path) for item in Plan(sources).items(skipped)]
        assert found == ["a.jpg", "cat-upright.jpg"]
        assert skipped.left_out[OUTPUTS] == 2
    assert len(list(Plan(named, folder=tmp_path / "out").items())) == 4


def test_a_format_changes_the_ending_only_where_it_does_not_fit(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.JPEG", "in/b.png")
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "out", format="jpeg")
    assert outs(plan, tmp_path) == ["out/a.JPEG", "out/b.jpg"]


def test_outputs_inside_the_inputs_are_not_read_again(tmp_path: Path) -> None:
    touch(tmp_path, "in/1.jpg", "in/out/1.jpg")
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "in" / "out")
    assert planned(plan, tmp_path) == [("in/1.jpg", "in/out/1.jpg")]
    touch(tmp_path, "in/1-upright.jpg", "in/bolt-upright.jpg")
    beside = Plan((str(tmp_path / "in"),))
    assert ("in/1.jpg", "in/1-upright.jpg") in planned(beside, tmp_path)
    assert "in/1-upright.jpg" not in [path for path, _ in planned(beside, tmp_path)]
    assert "in/bolt-upright.jpg" in [path for path, _ in planned(beside, tmp_path)]


def test_in_place_a_file_named_twice_is_turned_once(tmp_path: Path) -> None:
    touch(tmp_path, "in/1.jpg")
    (tmp_path / "in" / "link.jpg").symlink_to("1.jpg")
    sources = (str(tmp_path / "in"), str(tmp_path / "in" / "1.jpg"))
    assert planned(Plan(sources, in_place=True), tmp_path) == [("in/1.jpg", "in/1.jpg")]


def test_one_file_can_be_given_the_name_of_its_output(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg")
    source, out = str(tmp_path / "a.jpg"), tmp_path / "b.png"
    assert plan_for([source], str(out)) == Plan((source,), file=out, format="png")
    assert plan_for([source], str(tmp_path / "b")).folder == tmp_path / "b"
    assert plan_for([source], str(tmp_path / "b.gif")).format == "gif"
    (tmp_path / "folder.png").mkdir()
    folder = tmp_path / "folder.png"
    assert plan_for([source, source], str(folder)).folder == folder


def test_a_plan_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.jpg")
    folder, source = str(tmp_path / "in"), str(tmp_path / "in" / "a.jpg")
    for sources, out, options, words in (
        ([folder], folder, {}, "holds the inputs themselves"),
        ([source], folder, {}, "holds the inputs themselves"),
        ([source], source, {}, "is the input itself"),
        ([source], "x.png", {"in_place": True}, "leave out one of the two"),
        ([source], None, {"in_place": True, "format": "png"}, "keeps its format"),
        ([source], "x.gif", {"format": "png"}, "does not have an extension of the format png"),
        ([folder], source, {}, "is the name of one file"),
        ([source, source], "x.jpg", {}, "is the name of one file"),
        ([folder], "x.jpg", {}, "is the name of one file"),
    ):
        with pytest.raises(PlanError, match=words):
            plan_for(sources, out, **options)  # type: ignore[arg-type]


def test_the_journal_has_a_home_that_exists(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.jpg")
    source = str(tmp_path / "in" / "a.jpg")
    assert Plan((source,)).home == tmp_path / "in"
    assert Plan((str(tmp_path / "nowhere" / "b.jpg"), source)).home == tmp_path / "in"
    assert Plan((str(tmp_path / "nowhere" / "b.jpg"),)).home == Path()
    assert Plan((source,), folder=tmp_path / "new").home == tmp_path / "new"


def test_batches_are_always_cut_at_the_same_places() -> None:
    items = [Item(str(number)) for number in range(2 * BATCH + 3)]
    assert [len(batch) for batch in batches(items)] == [BATCH, BATCH, 3]
    assert [item for batch in batches(items) for item in batch] == items


def test_names_that_differ_only_by_normalisation_never_collide(tmp_path: Path) -> None:
    """é as one letter, and as e with an accent: macOS takes them for one file."""
    touch(tmp_path, "in/caf\u00e9.jpg", "in/cafe\u0301.jpg", "in/CAFE\u0301.jpg")
    found = outs(Plan((str(tmp_path / "in"),), folder=tmp_path / "out"), tmp_path)
    same = {unicodedata.normalize("NFC", str(out)).casefold() for out in found}
    assert len(found) == len(same) == 3


def test_an_output_whose_name_is_too_long_is_known_when_planning(tmp_path: Path) -> None:
    touch(tmp_path, "x" * 248 + ".jpg", "a.jpg", "\u00e9" * 122 + ".jpg")
    items = {os.path.basename(item.path)[:1]: item for item in Plan((str(tmp_path),)).items()}
    assert items["a"].error is None
    for letter in ("x", "\u00e9"):
        assert items[letter].out is None and "bytes" in (items[letter].error or "")


def test_the_runs_that_a_walk_comes_across_are_noted(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg", "b/.radialbeams-run/journal.jsonl", "b/c/d.jpg")
    skipped = SkippedFiles()
    assert len(list(Plan((str(tmp_path),), in_place=True).items(skipped))) == 2
    assert skipped.runs == [str(tmp_path / "b")]


# As another user, since root may read everything.
FORBIDDEN = """
import os, sys
from radialbeams.batch import Plan
if os.geteuid() == 0:
    os.setgid(12345)
    os.setuid(12345)
for item in Plan((sys.argv[1],), writes=False).items():
    print(os.path.relpath(item.path, sys.argv[1]), item.error)
"""


def test_what_may_not_be_read_is_a_failure_of_its_own() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        touch(folder, "in/a.jpg", "in/closed/b.jpg", "in/d.jpg", "vault/e.jpg")
        (folder / "in" / "c.jpg").symlink_to(folder / "vault" / "e.jpg")
        for path in (folder, folder / "in"):
            path.chmod(0o755)
        for path in (folder / "in" / "closed", folder / "vault"):
            path.chmod(0)
        try:
            done = subprocess.run(
                [sys.executable, "-c", FORBIDDEN, str(folder / "in")],
                capture_output=True,
                text=True,
            )
        finally:
            for path in (folder / "in" / "closed", folder / "vault"):
                path.chmod(0o755)
    assert done.stdout.splitlines() == [
        "a.jpg None",
        "c.jpg It cannot be read (Permission denied).",
        "closed This folder cannot be read (Permission denied), nor anything in it.",
        "d.jpg None",
    ], done.stderr
