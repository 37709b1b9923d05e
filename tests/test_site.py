"""The pages: MkDocs builds them strictly, so every link and anchor holds, and README.md is the short way in."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def site_links() -> ModuleType:
    """The hook of docs/."""
    specification = importlib.util.spec_from_file_location("site_links", ROOT / "docs" / "site_links.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(site)]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_the_site_is_built_strictly(tmp_path: Path):
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stdout
    page = (tmp_path / "site" / "reproduction.html").read_text()
    links = re.findall(r'(?:href|src)="(repository/[^"#]+)', page)
    assert "repository/results/quality/page.html" in links
    assert "repository/results/readings/figure.png" in links
    assert [link for link in links if not (tmp_path / "site" / link).is_file()] == []


@pytest.mark.slow
@pytest.mark.parametrize("link", ["../nowhere.md", "../README.md#nowhere", "nowhere.md", "#nowhere"])
def test_a_link_that_does_not_hold_fails(link: str, tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "index.md").write_text(f"# Title\n\n[there]({link})\n")
    (folder / "site_links.py").write_text((ROOT / "docs" / "site_links.py").read_text())
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("# Page\n")
    config = (ROOT / "mkdocs.yml").read_text().partition("nav:")[0]
    (tmp_path / "mkdocs.yml").write_text(config)
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere" in done.stdout


def test_every_page_is_in_the_contents():
    named = re.findall(r"[\w/-]+\.md", str(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert pages == {name for name in named if not name.startswith("repository/")}
    index = (ROOT / "docs" / "index.md").read_text()
    assert [page for page in pages - {"index.md"} if f"]({page})" not in index] == []


def test_the_readme_is_short_and_begins_with_what_there_is_to_do():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) < 90
    first = "\n".join(lines[:16])
    assert "](results/tuned/figure.png)" in first
    assert "make demo" in first
    assert "make test" in first


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Words", "words"),
        ("What it costs: ε, δ", "what-it-costs-ε-δ"),
        ("4. A method – of `your` own", "4-a-method--of-your-own"),
    ],
)
def test_anchors_are_those_of_github(site_links: ModuleType, heading: str, anchor: str):
    assert site_links.slug(heading, "-") == anchor


def test_links_are_resolved_as_github_does(site_links: ModuleType):
    assert site_links.target("docs/privacy.md", "../results/privacy_audit/page.md") == "results/privacy_audit/page.md"
    assert site_links.target("config/README.md", "../results/runs") == "results/README.md"
    assert site_links.uri("docs/api.md") == "api.md"
    assert site_links.uri("results/privacy_audit/page.md") == "repository/results/privacy_audit/page.md"
