"""MkDocs hook: links in pages hold as they are on GitHub, and files of the repository that pages
link to are put on the site.  A page of ``SORTED`` has a table there that can be sorted.

A page links to a file beside it or elsewhere in the repository by its relative path.  MkDocs knows
the folder docs/ alone, so linked files outside it are added below ``repository/``, and links are
rewritten.  A link to a folder goes to its README.md, or to that of the nearest folder above.  With
``--strict``, a link to a file that is not there or to no heading fails. A notebook is a page: its
text, its code, and what it printed or drew.
"""

import json
import posixpath
import re
import tomllib
from pathlib import Path

import pages
import pandas as pd
from cards import by_group, cards, completed
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from written import slug

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
FIRST = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Pages outside docs/ that are on the site whether linked or not."""
SORTED = ("docs/leaderboard.md", "docs/results/published-codes.md")
LINK = re.compile(r"""(\]\(|href=")(?!\w+:|#)([^)#\s"]+)""")
CELLS = {
    "markdown": "{}",
    "code": "```python\n{}\n```",
    "text/html": "{}",
    "image/png": "![what the code above draws](data:image/png;base64,{})",
}
CELLS["text/plain"] = "```\n{}\n```"
log = get_plugin_logger("site_links")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make anchors as GitHub does, and put the cards of methods into the contents; addresses are
    those of ``pyproject.toml``.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    config.site_url = project["urls"]["Site"]
    config.repo_url, config.repo_name = project["urls"]["Repository"], "Repository"
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    for entry in config.nav or ():
        if "Methods" in entry:
            entry["Methods"] += [
                {group: [{card.title: f"methods/{card.file}.md"} for card in cards]}
                for group, cards in by_group().items()
            ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to, and what those link to."""
    pages = [f"docs/{file.src_uri}" for file in files.documentation_pages()] + list(FIRST)
    for file in [each for each in files if each.src_uri.endswith(".ipynb")]:
        files.append(
            File.generated(
                config, uri(f"docs/{file.src_uri}"), content=notebook(file.content_string)
            )
        )
    seen = set(pages)
    for place in pages:  # which grows meanwhile
        if not place.startswith("docs/"):
            files.append(File.generated(config, uri(place), abs_src_path=str(ROOT / place)))
        if place.endswith(".md"):
            text = written(place)
            found = {target(place, link) for _, link in LINK.findall(text)} - seen
            found = {
                each for each in found if not each.startswith("docs/") and (ROOT / each).is_file()
            }
            seen |= found
            pages += sorted(found)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page from places in the repository to places on the site."""
    here = page.file.src_uri
    for card in cards():
        if here == f"methods/{card.file}.md":
            markdown = completed(card, markdown, lambda name: pd.read_csv(RESULTS / f"{name}.csv"))
    place = here.removeprefix("repository/") if here.startswith("repository/") else f"docs/{here}"
    if place in SORTED:
        markdown = written(place)

    def rewritten(match: re.Match[str]) -> str:
        linked = target(place, match[2])
        if not (ROOT / linked).is_file():
            log.warning(f"{place} links to {match[2]}, which is not there")
        if match[1] == "](":  # which MkDocs makes an address
            return match[1] + posixpath.relpath(uri(linked), posixpath.dirname(here) or ".")
        file = files.get_file_from_path(uri(linked))
        return match[1] + (file.url_relative_to(page.file) if file else match[2])

    return LINK.sub(rewritten, markdown)


def written(place: str) -> str:
    """The text of a page of the repository, with the table that can be sorted where it has one."""
    if place in SORTED:
        return pages.render(Path(f"{place}.j2"), site=True)
    return (ROOT / place).read_text(encoding="utf-8")


def notebook(text: str) -> str:
    """A notebook as Markdown; of an output the first kind that ``CELLS`` has."""
    parts = []
    for cell in json.loads(text)["cells"]:
        outputs = [
            each.get("data", {"text/plain": each.get("text")}) for each in cell.get("outputs", [])
        ]
        for each in [{cell["cell_type"]: cell["source"]}, *outputs]:
            kind = next(kind for kind in CELLS if kind in each)
            parts.append(CELLS[kind].format("".join(each[kind]).strip()))
    return "\n\n".join(parts)


def target(place: str, link: str) -> str:
    """The file of the repository that a link in the file ``place`` goes to; of a folder, the
    README.md in or above it.
    """
    found = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    folder = ROOT / found
    if folder.is_dir():
        while not (folder / "README.md").is_file() and folder != ROOT:
            folder = folder.parent
        found = (folder / "README.md").relative_to(ROOT).as_posix()
    return found


def uri(place: str) -> str:
    """Where a file of the repository lies among the sources of the site."""
    place = place.replace(".ipynb", ".md")
    return place.removeprefix("docs/") if place.startswith("docs/") else f"repository/{place}"
