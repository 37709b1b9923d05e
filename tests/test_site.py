"""The site in Chromium, read from disk without a network."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
ROOT = Path(__file__).resolve().parent.parent
OPTIONS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1300,900"),
    *("--virtual-time-budget=60000", "--dump-dom"),
]
FRAME = """\
<iframe src="driven.html" style="width: {width}px; height: 800px"></iframe><pre></pre>
<script>
  onmessage = ({{ data }}) => (document.querySelector("pre").textContent = JSON.stringify(data));
</script>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [1280, 400])
def test_the_leaderboard(site: Path, tmp_path: Path, width: int) -> None:
    """It sorts, filters and fits, and the search finds it."""
    page = (site / "leaderboard.html").read_text("utf-8")
    script = f"<script>{(ROOT / 'tests/site.js').read_text('utf-8')}</script></body>"
    (site / "driven.html").write_text(page.replace("</body>", script), "utf-8")
    (site / "frame.html").write_text(FRAME.format(width=width), "utf-8")
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={tmp_path}"]
    command.append((site / "frame.html").as_uri())
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search("<pre>(.+)</pre>", done.stdout)
    assert found
    assert json.loads(html.unescape(found[1])) == {}
