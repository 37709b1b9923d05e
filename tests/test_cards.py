"""The cards of methods: what is generated of them, and their equations."""

import html
import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import cards
import pages
import pandas as pd
import pytest

from test_site import CHROMIUM, OPTIONS

DOCS = Path(__file__).resolve().parent.parent / "docs"
READ = pages.Tables().read
TEXTS = {
    card: cards.completed(card, (cards.FOLDER / f"{card.file}.md").read_text("utf-8"), READ)
    for card in cards.cards()
}
KATEX = """\
<script src="{library}"></script><pre></pre><script>
  const failed = {blocks}.filter((text) => {{
    try {{ katex.renderToString(text, {{ displayMode: true }}); return false; }}
    catch {{ return true; }}
  }});
  document.querySelector("pre").textContent = JSON.stringify(failed);
</script>"""


@pytest.mark.parametrize("card", TEXTS, ids=lambda card: card.file)
def test_a_card_has_messages_hyperparameters_and_gains(card: cards.Card) -> None:
    text = TEXTS[card]
    for method in card.methods:
        assert all(f"| `{name}`" in text for name in method.parameters.model_fields)
    sent = pd.read_csv(cards.FOLDER / "messages.csv").query("method == @card.methods[0].name")
    figures = re.findall(r"<figure.*?</figure>", text)
    assert len(figures) == (len(sent) > 0)
    for figure in figures:
        labels = [
            each for each in ElementTree.fromstring(figure).iter("text") if not each.get("class")
        ]
        assert len(labels) == len(sent)
    judged = READ("field_tuned").dropna(subset="low")["method"]
    assert (
        text.count('<svg class="gain"') >= judged.isin([each.name for each in card.methods]).sum()
    )


@pytest.mark.parametrize("card", TEXTS, ids=lambda card: card.file)
def test_a_card_says_what_its_methods_assume(card: cards.Card) -> None:
    terms = (cards.FOLDER / "assumptions.md").read_text("utf-8")
    explained = set(re.findall(r"^\|`(.+?)`\|", terms, re.MULTILINE))
    text = (cards.FOLDER / f"{card.file}.md").read_text("utf-8")
    assumed = {term for method in card.methods for term in method.assumes}
    assert {term for term in explained if f"`{term}`" in text} == assumed <= explained


@pytest.mark.parametrize(
    ("method", "needs"),
    [("fedaux", "–|full|no new ones"), ("fedproto", "prototypes shared|full|yes")],
)
def test_the_list_of_methods_says_what_they_need(method: str, needs: str) -> None:
    (card,) = (each for each in TEXTS if each.file == method)
    assert cards.by_needs(card) == {needs: [method]}


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_equations_can_be_typeset(tmp_path: Path) -> None:
    found = [path.read_text("utf-8") for path in DOCS.rglob("*.md")]
    blocks = [block for text in found for block in re.findall(r"```math\n(.*?)```", text, re.S)]
    assert len(blocks) > len(TEXTS)
    page, library = tmp_path / "page.html", DOCS / "vendor" / "katex" / "katex.min.js"
    page.write_text(KATEX.format(library=library.as_uri(), blocks=json.dumps(blocks)), "utf-8")
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={tmp_path}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shown = re.search("<pre>(.+)</pre>", done.stdout)
    assert shown
    assert html.unescape(shown[1]) == "[]"
