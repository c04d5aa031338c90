"""Prepares the documentation site for mkdocs, which calls the `on_…` functions below.

The pages in docs/ must read well in the repository too, so they link to files outside docs/
(`../results/beams.png`). The site contains a copy of every such file under `repository/`, and links
are rewritten to the copy. The API reference has one page for each part of the package; these pages
are generated from the tree, so a module that moves needs no edit here.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "radialbeams"
COPIES = "repository"  # where the site keeps files from outside docs/
REFERENCE = "API reference"
# A link or an image in Markdown: text, then a target that is neither an anchor nor a web address.
LINK = re.compile(r"(\[[^\]]*\])\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


# --- links ---


def site_path(repository_path: str) -> str:
    """The path of a repository file in the site's sources."""
    if repository_path.startswith("docs/"):
        return repository_path.removeprefix("docs/")
    return f"{COPIES}/{repository_path}"


def repository_path(site: str) -> str:
    """The inverse of `site_path`."""
    if site.startswith(f"{COPIES}/"):
        return site.removeprefix(f"{COPIES}/")
    return f"docs/{site}"


def targets(page: str, text: str) -> Iterator[str]:
    """The repository paths that the Markdown `text` of `page`, a repository path, links to."""
    for match in LINK.finditer(text):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(page), match[2]))


def rewritten(page: str, text: str) -> str:
    """`text` with every link to a file outside docs/ pointing to the site's copy."""
    here = posixpath.dirname(page)
    home = posixpath.dirname(site_path(page)) or "."

    def rewrite(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, match[2]))
        if (ROOT / target).is_dir():  # a folder has no page: keep the text
            return match[1][1:-1]
        return f"{match[1]}({posixpath.relpath(site_path(target), home)}{match[3] or ''})"

    return LINK.sub(rewrite, text)


def copies(pages: list[str]) -> list[str]:
    """Files outside docs/ that `pages` need, directly or through other pages, in sorted order."""
    copied: set[str] = set()
    waiting = list(pages)
    while waiting:
        page = waiting.pop()
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in targets(page, text):
            outside = not target.startswith(("docs/", ".."))
            if outside and target not in copied and (ROOT / target).is_file():
                copied.add(target)
                if target.endswith(".md"):
                    waiting.append(target)
    return sorted(copied)


# --- the API reference ---


def parts() -> dict[str, list[str]]:
    """The package's parts and the dotted names of their modules; top-level modules are one part."""
    by_part: dict[str, list[str]] = {"modules": []}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.stem == "__main__" or path == PACKAGE / "__init__.py":
            continue
        names = path.relative_to(PACKAGE).with_suffix("").parts
        if names[-1] == "__init__":
            names = names[:-1]
        name = ".".join(("radialbeams", *names))
        top_level = path.parent == PACKAGE
        by_part.setdefault("modules" if top_level else names[0], []).append(name)
    return by_part


def reference_page(part: str, modules: list[str]) -> str:
    return "\n\n".join([f"# {_label(part)}", *(f"::: {module}" for module in modules)]) + "\n"


# --- what mkdocs calls ---


def on_config(config: Any) -> Any:
    """Adds the generated pages of the reference, and the files outside docs/, to the navigation."""
    config.nav = [_section(entry) for entry in config.nav]
    return config


def _section(entry: dict[str, Any]) -> dict[str, Any]:
    ((title, content),) = entry.items()
    if not isinstance(content, list):
        return entry
    pages = [{name: _in_site(path) for name, path in page.items()} for page in content]
    if title == REFERENCE:
        pages += [{_label(part): f"reference/{part}.md"} for part in parts()]
    return {title: pages}


def _in_site(path: str) -> str:
    return f"{COPIES}/{path.removeprefix('../')}" if path.startswith("../") else path


def _label(part: str) -> str:
    return "Top-level modules" if part == "modules" else part


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    pages = [f"docs/{file.src_uri}" for file in files if file.src_uri.endswith(".md")]
    named = [path for path in _navigated(config.nav) if path.startswith(f"{COPIES}/")]
    outside = [repository_path(path) for path in named]
    for path in sorted({*outside, *copies(pages + outside)}):
        files.append(File.generated(config, site_path(path), abs_src_path=os.fspath(ROOT / path)))
    for part, modules in parts().items():
        name = f"reference/{part}.md"
        files.append(File.generated(config, name, content=reference_page(part, modules)))
    return files


def _navigated(entries: Any) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        yield from (path for value in entries.values() for path in _navigated(value))
    else:
        yield from (path for value in entries for path in _navigated(value))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return rewritten(repository_path(page.file.src_uri), markdown)
