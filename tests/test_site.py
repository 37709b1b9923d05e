"""The pages: MkDocs builds them strictly, so every link and anchor holds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(site),
    ]
    return subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.slow
def test_the_site_is_built_strictly(tmp_path: Path):
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stdout
    page = (tmp_path / "site" / "results" / "reproduction.html").read_text()
    links = re.findall(r'(?:href|src)="\.\./(repository/[^"#]+)', page)
    assert "repository/results/quality/page.html" in links
    assert "repository/results/interpretations/figure.png" in links
    assert [link for link in links if not (tmp_path / "site" / link).is_file()] == []
    reference = (tmp_path / "site" / "reference" / "api.html").read_text()
    for name in ("basic.fedavg.train_on", "method.Method"):
        assert f'id="feddep.methods.{name}"' in reference
    drawn = re.findall(
        r'src="data:image/png;base64,',
        (tmp_path / "site" / "guide" / "quickstart.html").read_text(),
    )
    assert len(drawn) == 2  # the notebook's figures


@pytest.mark.slow
@pytest.mark.parametrize(
    "link", ["../nowhere.md", "../README.md#nowhere", "nowhere.md", "#nowhere"]
)
def test_a_link_that_does_not_hold_fails(link: str, tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "index.md").write_text(f"# Title\n\n[there]({link})\n")
    for name in ("site_links.py", "cards.py"):
        (folder / name).write_text((ROOT / "docs" / name).read_text())
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("# Page\n")
    config = (ROOT / "mkdocs.yml").read_text().partition("nav:")[0]
    (tmp_path / "mkdocs.yml").write_text(config)
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere" in done.stdout


def test_every_page_is_in_the_contents():
    """All but the cards of methods, which the site's hook adds."""
    named = re.findall(
        r"[\w/-]+\.md", re.search(r"\nnav:\n.*", (ROOT / "mkdocs.yml").read_text(), re.DOTALL)[0]
    )
    found = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    pages = {path.relative_to(ROOT / "docs").with_suffix(".md").as_posix() for path in found}
    cards = {f"methods/{path.name}" for path in (ROOT / "docs" / "methods").glob("*.md")}
    assert pages - cards == {name for name in named if not name.startswith("repository/")} - cards
