"""The page of codes is complete and is the code's."""

from pathlib import Path

from infrarsi.contract import CATALOGUE
from infrarsi.rules import RULES
from infrarsi.rules.__main__ import main
from infrarsi.rules.page import rules_page

PAGE = Path(__file__).parents[3] / "docs" / "rules.md"


def test_the_page_in_docs_is_the_codes() -> None:
    assert PAGE.read_text() == rules_page(), "run: make schemas"


def test_every_code_stands_on_the_page_once() -> None:
    for code in CATALOGUE:
        assert rules_page().count(f"### {code}: ") == 1


def test_every_code_a_reader_can_decide_has_a_rule() -> None:
    static = {name for name, code in CATALOGUE.items() if code.decided_by != "judge"}
    assert static == set(RULES)


def test_the_generator_writes_where_it_is_told(tmp_path: Path) -> None:
    assert main([str(tmp_path / "rules.md")]) == 0
    assert (tmp_path / "rules.md").read_text() == rules_page()
    assert main([]) == 2
