"""A page in Markdown with its figures as one HTML file that needs no other file and no network."""

import base64
import html
import re
from pathlib import Path

import markdown

from feddep.utils.errors import DataError

_STYLE = """\
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; }
h2 { font-size: 1.2rem; border-bottom: 1px solid #8886; }
h3 { font-size: 1rem; }
table {
  display: block; overflow-x: auto; border-collapse: collapse;
  font-size: .875rem; font-variant-numeric: tabular-nums;
}
th, td {
  padding: .3rem .75rem .3rem 0; text-align: left; border-bottom: 1px solid #8886;
  white-space: nowrap;
}
img { max-width: 100%; height: auto; }"""


def render(page: Path) -> str:
    """A page of tables and figures as HTML.

    Args:
        page: a file in Markdown; its images are SVG files beside it.

    Raises:
        DataError: if an image is missing.
    """
    text = page.read_text(encoding="utf-8")
    title = html.escape(
        html.unescape(re.sub(r"\\(.)", r"\1", text.partition("\n")[0].removeprefix("# ")))
    )
    body = markdown.markdown(text, extensions=["tables", "sane_lists"])
    body = re.sub(
        r'(<img [^>]*src=")([^":]+)(")',
        lambda found: found[1] + _inlined(page.parent / found[2]) + found[3],
        body,
    )
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" '
        f'content="width=device-width">\n<title>{title}</title>'
    )
    head += f"\n<style>\n{_STYLE}\n</style>"
    return (
        "<!doctype html>\n<html "
        f'lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'
    )


def _inlined(image: Path) -> str:
    """An image as an address that holds it."""
    if not image.is_file():
        raise DataError(f"{image} does not exist, and a page shows it; run `snakemake` to make it")
    return f"data:image/svg+xml;base64,{base64.b64encode(image.read_bytes()).decode()}"
