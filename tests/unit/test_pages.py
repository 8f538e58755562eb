from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*/*.md")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHOWN = re.compile(r"<!-- from: (\S+) -->\n```python\n(.*?)```", re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the names by which the headings of a page can be reached."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_code_that_a_page_shows_is_that_of_its_file() -> None:
    page = (ROOT / "docs" / "storages.md").read_text(encoding="utf-8")

    shown = SHOWN.findall(page)

    assert shown
    for path, code in shown:
        assert code in (ROOT / path).read_text(encoding="utf-8"), code


def test_the_readme_leads_to_every_page() -> None:
    linked = LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))

    pages = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")}
    assert pages <= set(linked)
