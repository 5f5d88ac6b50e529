"""Every citation in the code leads to a heading of a page that is in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.citations import Citation, citations_of, files, foreign_documents, places
from tests.docs.pages import ROOT

OWN = {"tests/docs/citations.py", "tests/docs/test_citations.py"}


def cited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    monkeypatch.setattr("tests.docs.citations.ROOT", tmp_path)
    (tmp_path / "file.py").write_text(text)
    return [citation.place for citation in citations_of(tmp_path / "file.py")]


def test_every_citation_leads_to_a_heading() -> None:
    broken = [
        str(citation)
        for path in files()
        if str(path.relative_to(ROOT)) not in OWN
        for citation in citations_of(path)
        if not citation.resolves
    ]

    assert broken == []


def test_nothing_cites_documents_that_are_not_here() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files()
        if str(path.relative_to(ROOT)) not in OWN
        for name in foreign_documents(path)
    ]

    assert found == []


def test_a_document_that_is_not_here_is_found_by_its_name_or_by_a_section(tmp_path: Path) -> None:
    file = tmp_path / "file.py"
    file.write_text("# see docs/protocol.md 5.7, notes.md and wire-notes 4.2; a two-step 3 is none")

    assert list(foreign_documents(file)) == ["notes.md", "wire-notes 4.2"]


def test_known_defects_that_comments_name_are_listed() -> None:
    known = places("docs/protocol.md")
    unknown = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files()
        if path.suffix == ".py" and str(path.relative_to(ROOT)) not in OWN
        for name in re.findall(r"[#(][^\n\"]*?(?<![\w.])([GJ]\d{1,2})(?!\w)", path.read_text())
        if name not in known
    ]

    assert unknown == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(docs/protocol.md 5.7).", ["5.7"]),
        ("docs/protocol.md 4.2 to 4.4 say", ["4.2", "4.3", "4.4"]),
        ("docs/protocol.md 1.3-1.5, docs/data-plane.md 1.3", ["1.3", "1.4", "1.5", "1.3"]),
        ("docs/protocol.md 5.8, 6.1 G8 and G11, 6.2 J6", ["5.8", "6.1", "G8", "G11", "6.2", "J6"]),
        ("docs/protocol.md\n    # 5.7 and 6.1", ["5.7", "6.1"]),
        ("docs/architecture.md rule 4: the clock", ["rule 4"]),
        ("docs/architecture.md rules 1 and 2, 3.", ["rule 1", "rule 2", "rule 3"]),
        ("docs/architecture.md 3, the snapshot", ["3"]),
        ("docs/sinks.md, and 4 more", [""]),
        ("docs/object.md has 5 fields", [""]),
    ],
)
def test_citations_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: list[str]) -> None:
    assert cited(tmp_path, monkeypatch, text) == expected


@pytest.mark.parametrize("place", ["9.9", "rule 21", "G25"])
def test_a_place_that_does_not_exist_does_not_resolve(place: str) -> None:
    assert not Citation("here", "docs/architecture.md", place).resolves


def test_a_page_that_does_not_exist_does_not_resolve() -> None:
    assert not Citation("here", "docs/nowhere.md", "").resolves


def test_pages_that_are_cited_by_number_have_all_of_them() -> None:
    protocol = [(1, 10), (2, 6), (3, 5), (4, 9), (5, 10), (6, 2)]
    data_plane = [(1, 11), (2, 8), (3, 4)]

    for name, chapters in (("docs/protocol.md", protocol), ("docs/data-plane.md", data_plane)):
        assert {f"{chapter}.{n}" for chapter, last in chapters for n in range(1, last + 1)} <= places(name)
    assert {f"rule {number}" for number in range(1, 21)} <= places("docs/architecture.md")
