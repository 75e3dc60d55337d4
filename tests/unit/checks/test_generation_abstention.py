"""Abstention phrases: data of our own, matched as whole answers alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripos.checks.abstention import Phrases, abstention, normal, shipped
from tripos.contracts.config import LANGUAGES

ALL = Phrases()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_at_least_twelve_distinct_phrases(language: str) -> None:
    phrases = shipped(language)
    assert len(phrases) >= 12
    assert len({normal(p) for p in phrases}) == len(phrases)
    assert all(ALL.match(phrase) for phrase in phrases)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        ("I DON'T KNOW", "I don't know."),
        ("I don’t know!!!", "I don't know."),
        ("  i   don't\n know… ", "I don't know."),
        ("Ｉ ｄｏｎ＇ｔ ｋｎｏｗ", "I don't know."),
        ("ICH WEISS ES NICHT", "Ich weiß es nicht."),
        ("No lo se\u0301.", "No lo sé."),
        ("我 不 知 道", "我不知道。"),
        ("ﾜｶﾘﾏｾﾝ", None),
        ("分かりません", "分かりません。"),
        ("I don't know, but the token expires after 30 days [1].", None),
        ("The manual says: I don't know.", None),
        ("No", None),
        ("?", None),
    ],
)
def test_case_width_marks_and_spaces_do_not_matter_and_more_words_do(answer: str, phrase: str | None) -> None:
    assert ALL.match(answer) == phrase


@given(st.sampled_from(sorted(ALL.by_form.values())), st.text(min_size=1, max_size=30))
def test_a_phrase_with_more_words_is_no_abstention(phrase: str, more: str) -> None:
    longer = f"{phrase} {more}"
    if normal(longer) not in ALL.by_form:
        assert ALL.match(longer) is None


def test_given_beats_empty_beats_phrase() -> None:
    assert abstention("I don't know.", False, ALL) == (False, "given")
    assert abstention("", True, ALL) == (True, "given")
    assert abstention(" ", None, ALL) == (True, "empty")
    assert abstention("I don't know.", None, ALL) == (True, "phrase")
    assert abstention("Thirty days.", None, ALL) == (False, "answered")


def test_languages_and_own_phrases_decide_the_content() -> None:
    assert Phrases(["de"]).match("I don't know.") is None
    assert Phrases([], ["Ask the desk"]).match("ask the desk!") == "Ask the desk"
    assert Phrases(["en"]).content() != Phrases(["en"], ["Ask the desk"]).content()
    assert Phrases([]).match("") is None
