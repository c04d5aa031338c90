"""Every page: its snippets run, its commands and links exist, and the navigation names it."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
import snippets
import torch
import typer.main

from radialbeams import cli
from radialbeams.batch.outcome import Action, Method, OutcomeRecord
from radialbeams.decisions import AngleSource, Measure, Reason
from radialbeams.nn.module import Canonicalizer
from radialbeams.training import leaks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
}
# Text pages at the top that link into the tree.
LINKING = {
    **PAGES,
    **{path.name: path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("*.md"))},
}


# --- snippets ---


def the_detectors_output() -> dict[str, Any]:
    """What the fragments of the detector's page assume: an image, boxes, and things found."""
    images = torch.rand(2, 3, 48, 64)
    return {
        "torch": torch,
        "Pose": type(Canonicalizer.from_pretrained("ring.lfw")(images)[1]),
        "canonicalizer": Canonicalizer.from_pretrained("ring.lfw"),
        "image": images[:1],
        "images": images,
        "angle": torch.tensor([0.7]),
        "height": 48,
        "width": 64,
        "found_in_turned": torch.rand(1, 3, 2) * 40,
        "boxes": [torch.tensor([[4.0, 5, 30, 40]]), torch.tensor([[9.0, 9, 50, 45]])],
        "eyes_in_crops": torch.rand(2, 2, 2) * 190,
        "boxes_in_crops": torch.tensor([[[10.0, 20, 90, 80]], [[30.0, 30, 60, 70]]]),
        "masks_in_crops": torch.rand(2, 192, 192) > 0.5,
    }


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_snippet_of_a_page_is_known(page: str) -> None:
    """A fence in an unusual layout would neither run nor say why."""
    assert len(list(snippets.snippets(PAGES[page]))) == snippets.fences(PAGES[page])


def test_the_landing_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    snippets.run(PAGES["docs/index.md"])
    assert (tmp_path / "upright.png").is_file()


def test_the_page_on_leaks_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer views, so that it takes seconds; what it prints then means nothing."""
    monkeypatch.setattr(leaks, "QUICK", {**leaks.QUICK, "views": 64, "test_views": 64})
    names = snippets.run(PAGES["docs/leaks.md"])
    assert [leak.rendering for leak in names["leaks"]] == ["mine", "mine", "bilinear", "bilinear"]


def test_the_fragments_of_the_detectors_page_run() -> None:
    torch.manual_seed(0)
    names = snippets.run(PAGES["docs/detector.md"], the_detectors_output())
    assert names["crops"].shape == (2, 3, 192, 192)
    assert (names["eyes"].shape, names["corners"].shape) == ((2, 2, 2), (2, 1, 4, 2))
    assert names["masks"].shape == (2, 48, 64)


# README.md is run by test_readme.py, tutorials by test_tutorial.py, serving by test_clients.py.
RUN = {"README.md", "docs/in-front-of-your-model.md", "docs/serving.md"}
RUN |= {"docs/index.md", "docs/leaks.md", "docs/detector.md", "docs/train.md"}


def test_every_page_with_snippets_is_run() -> None:
    to_run = {
        page
        for page, text in PAGES.items()
        if any(snippet.reason is None for snippet in snippets.snippets(text))
    }
    assert to_run == RUN


def test_a_wrong_word_or_number_would_be_seen() -> None:
    same = snippets.same
    assert same("turned by [90, 92] degrees\n", "turned by [91, 91] degrees\n")
    assert same("turned by [359, 92] degrees\n", "turned by [1, 91] degrees\n")
    assert not same("turned by [90, 120] degrees\n", "turned by [91, 91] degrees\n")
    assert not same("noise: False\n", "noise: True\n")
    assert not same("accuracy 71\n", "accuracy 72\n")
    assert not same("one line\n", "one line\nand another\n")


def test_a_snippet_that_fails_or_prints_something_else_would_be_seen() -> None:
    with pytest.raises(AssertionError, match="prints\n2"):
        snippets.run("```python\nprint(2)\n```\n\n```text\n3\n```\n")
    with pytest.raises(NameError):
        snippets.run("```py\nnobody_defined_this\n```\n")
    marked = "<!-- not run: needs a GPU -->\n```python\nnobody_defined_this\n```\n"
    assert snippets.run(marked) == {}


# --- commands ---


def command_lines(text: str) -> list[list[str]]:
    """The lines of shell blocks, as words and without comments."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for kind, block in blocks if kind in ("", "sh") for line in block.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def mistake(line: list[str]) -> str | None:
    """What is wrong with a command line: an unknown verb, option, script, module or target."""
    program, first = Path(line[0]).name, line[1] if len(line) > 1 else ""
    if program == "make" and not re.search(rf"^{first}:", MAKEFILE, re.MULTILINE):
        return f"no target {first}"
    if program == "python" and first == "-m":
        return None if importlib.util.find_spec(line[2]) else f"no module {line[2]}"
    if program == "python" and not (ROOT / first).is_file():
        return f"no script {first}"
    if program == "radialbeams":
        if first not in VERBS:
            return f"no command {first}"
        known = {name for option in VERBS[first].params for name in option.opts}
        wrong = [word for word in line[2:] if word.startswith("-") and word not in known]
        return f"{first} has no {wrong[0]}" if wrong else None
    return None


MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
VERBS: dict[str, Any] = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", sorted({**LINKING, "tests/README.md": ""}))
def test_the_commands_of_a_page_exist_with_their_options(page: str) -> None:
    lines = command_lines((ROOT / page).read_text(encoding="utf-8"))
    assert [mistake(line) for line in lines if mistake(line)] == []


def test_a_wrong_command_would_be_found() -> None:
    block = "```sh\nradialbeams upright a --nowhere  # --comment\nradialbeams upturn\n"
    block += (
        "make nothing\npython nowhere.py\npython -m radialbeams.zoo\nradialbeams demo -o b\n```\n"
    )
    assert [mistake(line) for line in command_lines(block)] == [
        *("upright has no --nowhere", "no command upturn", "no target nothing"),
        *("no script nowhere.py", None, None),
    ]


# --- links ---


def anchors(text: str) -> set[str]:
    """The anchors that both GitHub and the site make of headings."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    words = [re.sub(r"[^\w\s-]", "", title.lower()).strip() for title in titles]
    return {re.sub(r"\s", "-", title) for title in words}


def dead_links(page: str, text: str) -> list[str]:
    """Relative links of a page, by its path from the root, to no file or to no heading."""
    dead = []
    links = re.findall(r"\]\((?![a-z]+:)([^)#\s]*)#?([^)\s]*)\)", text)
    links += [(target, "") for target in re.findall(r'<img src="(?![a-z]+:)([^"]+)"', text)]
    for target, anchor in links:
        path = (ROOT / page).parent / target if target else ROOT / page
        if not path.exists():
            dead.append(target)
        elif anchor and path.suffix == ".md":
            content = text if not target else path.read_text(encoding="utf-8")
            if anchor not in anchors(content):
                dead.append(f"{target}#{anchor}")
    return dead


@pytest.mark.parametrize("page", sorted(LINKING))
def test_no_link_is_dead(page: str) -> None:
    assert dead_links(page, LINKING[page]) == []


def test_a_dead_link_would_be_found() -> None:
    text = "# A title\n[a](nowhere.md) [b](#a-title) [c](#another) [d](models.md#ring) [e](#)"
    text += '<img src="nothing.png"> <img src="demo.png" width="40">'
    assert dead_links("docs/index.md", text) == ["nowhere.md", "#another", "nothing.png"]


def test_every_field_of_the_json_has_its_meaning() -> None:
    page = PAGES["docs/json.md"]
    assert [name for name in OutcomeRecord.__annotations__ if f"`{name}`" not in page] == []
    assert [name for name in get_args(Measure) if f"| `{name}` | " not in page] == []
    for words in (get_args(Action), get_args(Reason), get_args(AngleSource), get_args(Method)):
        assert [word for word in words if f"`{word}`" not in page] == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r": ([\w/-]+\.md)$", navigation, re.MULTILINE))
    assert named == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
