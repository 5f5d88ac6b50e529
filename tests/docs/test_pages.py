"""Links, sizes and words of the pages."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, Page, page, pages

PAGES = list(pages())
#: A page for people has a length that people read.
README_BYTES = 9 * 1024
#: Words and turns that CONTRIBUTING.md replaces by plain ones.
HABITS = (
    r"\bfor ever\b",
    r"\bnobody\b",
    r"\bsomebody\b",
    r"\bwhoever\b",
    r"\bput up with\b",
    r"\bmend(s|ed|ing)?\b",
    r"\bgo(es)? on (where|with|after|as)\b",
    r"\blast words\b",
    r"\bbefall",
    r"\bthat is none\b",
    r"\bis told\b",
    r"\btold of\b",
    r"\bhow manieth\b",
    r"\bas it is asked\b",
    r"\bat the most\b",
)
#: The page that lists the words quotes them.
WORD_LIST = "CONTRIBUTING.md"


@pytest.mark.parametrize("each", PAGES, ids=str)
def test_links_lead_to_files_and_headings(each: Page) -> None:
    for target in each.links:
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        found = (ROOT / each.path).parent / path if path else ROOT / each.path
        assert found.exists(), target
        if anchor:
            assert anchor in page(str(found.resolve().relative_to(ROOT))).anchors, target


@pytest.mark.parametrize("each", PAGES, ids=str)
def test_a_page_has_one_title_and_no_level_is_skipped(each: Page) -> None:
    levels = [len(marks) for marks in re.findall(r"^(#+) ", re.sub(r"```.*?```", "", each.text, flags=re.S), re.M)]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels))


@pytest.mark.parametrize("each", [each for each in PAGES if str(each) != WORD_LIST], ids=str)
@pytest.mark.parametrize("habit", HABITS)
def test_the_prose_is_plain(each: Page, habit: str) -> None:
    assert re.findall(habit, each.prose, re.IGNORECASE) == []


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= README_BYTES


def test_the_readme_leads_to_every_page() -> None:
    linked = {target.partition("#")[0] for target in page("README.md").links}
    wanted = {str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))} - {"README.md"}

    assert wanted <= linked


def test_every_example_is_described() -> None:
    described = set(page("docs/examples/README.md").links)

    assert {path.name for path in Path(DOCS / "examples").glob("*.py")} <= described
