"""The embedded BM25: its figures, its order, and what it never shows."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from tripos.contracts.base import Scalar
from tripos.contracts.config import SearchConfig
from tripos.contracts.fragments import Fragment
from tripos.contracts.index import AclDefault, Corpus
from tripos.errors import ConfigError, InputError, UsageError
from tripos.search import Hit, Query, Searcher
from tripos.search.lexical import Lexical, best
from tripos.search.words import ENGLISH_STOPWORDS, analyser, words

CRANFIELD = Path(__file__).parents[3].parent / "shared" / "data" / "cranfield"


def corpus_of(*fragments: Fragment, acl_default: AclDefault | None = None) -> Corpus:
    corpus = Corpus(acl_default=acl_default)
    for fragment in fragments:
        corpus.add(fragment)
    return corpus


def texts(**by_id: str) -> Corpus:
    return corpus_of(*(Fragment(fragment_id=name, text=text) for name, text in by_id.items()))


def lexical(corpus: Corpus, **parameters: Scalar) -> Lexical:
    return Lexical(corpus, SearchConfig(mode="lexical", lexical=parameters or None))


def ask(searcher: Searcher, text: str, limit: int = 50, **query: object) -> list[Hit]:
    return list(searcher.search(Query("q", text, **query), limit))  # type: ignore[arg-type]


def names(hits: Sequence[Hit]) -> list[str]:
    return [hit.fragment_id for hit in hits]


# --- the figures


def test_scores_are_lucene_bm25_derived_by_hand() -> None:
    # three fragments of 3, 2 and 1 words: mean length 2
    # "rotate" stands in 2 of 3: idf = ln(1 + (3 − 2 + ½) / (2 + ½)) = ln 1.6 = 0.470004
    # a: tf 2, length 3: 2 / (2 + 1.5 · (¼ + ¾ · 3/2)) = 2 / 4.0625 = 0.492308 → 0.470004 · 0.492308 = 0.231386
    # b: tf 1, length 2: 1 / (1 + 1.5 · (¼ + ¾ · 2/2)) = 1 / 2.5 = 0.4 → 0.188001
    hits = ask(lexical(texts(a="rotate rotate token", b="rotate key", c="billing")), "rotate")
    assert names(hits) == ["a", "b"]
    assert [hit.score for hit in hits] == pytest.approx([0.231386, 0.188001], abs=5e-7)


def test_parameters_reach_the_formula() -> None:
    # k1 = 0: the tf part is 1, so that the score is the idf alone: ln 1.6
    hits = ask(lexical(texts(a="rotate rotate token", b="rotate key", c="billing"), k1=0), "rotate")
    assert [hit.score for hit in hits] == [0.4700036, 0.4700036]
    # b = 0: no length: a: 2 / (2 + 1.5) = .571429 → .2685735
    hits = ask(lexical(texts(a="rotate rotate token", b="rotate key", c="billing"), b=0), "rotate")
    assert hits[0].score == pytest.approx(0.2685735, abs=1e-7)
    # atire: idf ln(3/2) = .405465, tf part 2 · 2.5 / 4.0625 = 1.230769 → .499034
    hits = ask(lexical(texts(a="rotate rotate token", b="rotate key", c="billing"), method="atire"), "rotate")
    assert hits[0].score == pytest.approx(0.499034, abs=5e-7)


def test_a_word_asked_twice_counts_twice() -> None:
    searcher = lexical(texts(a="rotate key", b="billing"))
    once, twice = ask(searcher, "rotate")[0].score, ask(searcher, "rotate rotate")[0].score
    assert twice == pytest.approx(2 * once, rel=1e-6)


def brute_force(corpus: Corpus, text: str) -> list[tuple[str, float]]:
    """Lucene's BM25 from its definition, over every fragment, by score and id; k1 1.5, b .75."""
    indexed = {n: re.findall(r"\w+", f"{corpus.titles.get(n, '')} {t}".lower()) for n, t in corpus.texts.items()}
    mean = sum(map(len, indexed.values())) / len(indexed)
    scores = dict.fromkeys(indexed, 0.0)
    for word in re.findall(r"\w+", text.lower()):
        df = sum(word in found for found in indexed.values())
        for name, found in indexed.items():
            if tf := Counter(found)[word]:
                idf = math.log(1 + (len(indexed) - df + 0.5) / (df + 0.5))
                scores[name] += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(found) / mean))
    ranked = [(name, float(f"{score:.7g}")) for name, score in scores.items() if score > 0]
    return sorted(ranked, key=lambda pair: (-pair[1], pair[0].encode()))


WORDS = st.lists(st.sampled_from(["rotate", "key", "token", "Plan", "b", "5", "größe", "🙂"]), max_size=6).map(" ".join)
GROUPS = st.lists(st.sampled_from(["staff", "legal", "ops"]), max_size=2, unique=True)
VALUES: st.SearchStrategy[Scalar] = st.sampled_from([True, 1, 1.0, "1", 0, False, None, "de"])
FILTERS = st.dictionaries(st.sampled_from(["lang", "tier"]), VALUES, max_size=2)
IDS = st.lists(st.text("ab:é🙂", min_size=1, max_size=4), min_size=1, max_size=8, unique=True)


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    return corpus_of(
        *(
            Fragment(
                fragment_id=name,
                text=draw(WORDS),
                title=draw(st.none() | WORDS),
                acl=draw(st.none() | GROUPS.map(tuple)),
                metadata=draw(FILTERS),
            )
            for name in draw(IDS)
        ),
        acl_default=draw(st.sampled_from(["public", "deny"])),
    )


@settings(deadline=None, max_examples=200)
@given(
    corpus=corpora(), text=WORDS, groups=st.none() | GROUPS.map(tuple), filters=FILTERS, policy=FILTERS,
    limit=st.integers(1, 9),
)  # fmt: skip
def test_what_comes_is_the_brute_force_ranking_of_what_may_be_seen(
    corpus: Corpus, text: str, groups: tuple[str, ...] | None, filters: dict[str, Scalar], policy: dict[str, Scalar], limit: int
) -> None:
    searcher = Lexical(corpus, SearchConfig(mode="lexical", filters=policy))
    for _ in range(2):  # the second time from the masks kept
        hits = searcher.search(Query("q", text, groups, filters), limit)
        assert all(corpus.admits(hit.fragment_id, groups, {**policy, **filters}) for hit in hits)
        seen = [pair for pair in brute_force(corpus, text) if corpus.admits(pair[0], groups, {**policy, **filters})]
        assert names(hits) == [name for name, _ in seen[:limit]]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in seen[:limit]], rel=1.1e-6)


@given(
    scores=st.lists(st.sampled_from([0.0, 1e-9, 1.0, 1 + 1e-7, 1 + 3e-7, 1 + 1e-6, 2.0, 9.999999, 9.9999995]), max_size=30),
    limit=st.integers(1, 12),
)
def test_the_cut_is_made_on_rounded_scores(scores: list[float], limit: int) -> None:
    rounded = sorted((-float(f"{score:.7g}"), place) for place, score in enumerate(scores) if score > 0)
    assert best(np.array(scores, dtype=np.float64), limit) == [(place, -score) for score, place in rounded[:limit]]


# --- order and words


def test_ties_stand_in_byte_order_of_their_ids() -> None:
    ids = ["b", "a", "Z", "é", "🙂", "ｚ", "a::f2", "a::f10"]
    hits = ask(lexical(texts(**dict.fromkeys(ids, "rotate the key"))), "rotate")
    assert names(hits) == sorted(ids, key=str.encode)
    assert names(ask(lexical(texts(**dict.fromkeys(ids, "rotate the key"))), "rotate", 3)) == sorted(ids, key=str.encode)[:3]


def test_order_of_fragments_and_cut_do_not_matter() -> None:
    pairs = {f"d{n}": "key " * (n % 4 + 1) + "token " * (n % 3) + "x " * (n % 5) for n in range(40)}
    whole = ask(lexical(texts(**pairs)), "key token", 40)
    backwards = lexical(texts(**dict(reversed(pairs.items()))))
    for limit in (1, 7, 39, 40, 1000):
        assert ask(backwards, "key token", limit) == whole[:limit]


@pytest.mark.parametrize("text", ["", "   ", "…?!", "unheard of"])
def test_no_known_word_gives_an_empty_list(text: str) -> None:
    assert ask(lexical(texts(a="rotate key")), text) == []


def test_a_corpus_without_any_word_gives_empty_lists() -> None:
    assert ask(lexical(texts(a="", b="…")), "rotate") == []


def test_title_and_text_are_indexed() -> None:
    corpus = corpus_of(Fragment(fragment_id="a", title="Rotation", text="see below"), Fragment(fragment_id="b", text="other"))
    assert names(ask(lexical(corpus), "rotation")) == names(ask(lexical(corpus), "below")) == ["a"]


def test_words_are_lower_cased_nfkc_runs_of_one_character_or_more() -> None:
    assert words("Plan B: 5 GB, v2_x – don't") == ["plan", "b", "5", "gb", "v2_x", "don", "t"]
    assert words("ﬁle Ｆｕｌｌ ＧRÖẞE cafe\u0301") == ["file", "full", "größe", "café"]
    assert words("Привет, 世界 🙂") == ["привет", "世界"]


def test_stopwords_and_stemmer_are_as_asked() -> None:
    assert analyser("none", "none")("the rotating keys") == ["the", "rotating", "keys"]
    assert analyser("english", "none")("The rotating keys") == ["rotating", "keys"]
    assert analyser("english", "english")("The rotating keys") == ["rotat", "key"]
    assert len(ENGLISH_STOPWORDS) == 33


def test_a_missing_stemmer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(UsageError, match="pip install PyStemmer"):
        lexical(texts(a="rotate"), stemmer="english")


# --- who sees what


def test_the_mask_comes_before_the_cut() -> None:
    secret = [Fragment(fragment_id=f"s{n}", text="rotate rotate", acl=("legal",)) for n in range(60)]
    open_one = Fragment(fragment_id="z", text="rotate something else entirely", acl=("staff",))
    searcher = lexical(corpus_of(*secret, open_one))
    assert names(ask(searcher, "rotate", 5, groups=("staff",))) == ["z"]
    assert names(ask(searcher, "rotate", 5, groups=())) == []
    assert len(ask(searcher, "rotate", 5)) == 5


def test_filters_tell_types_apart_and_the_querys_own_win() -> None:
    values: Mapping[str, Scalar] = {"true": True, "one": 1, "text": "1"}
    corpus = corpus_of(*(Fragment(fragment_id=n, text="rotate", metadata={"v": v}) for n, v in values.items()))
    searcher = Lexical(corpus, SearchConfig(mode="lexical", filters={"v": True}))
    assert names(ask(searcher, "rotate")) == ["true"]
    assert names(ask(searcher, "rotate", filters={"v": 1})) == ["one"]
    assert names(ask(searcher, "rotate", filters={"v": 1.0})) == ["one"]
    assert names(ask(searcher, "rotate", filters={"v": "1"})) == ["text"]
    assert names(ask(searcher, "rotate", filters={"w": None})) == []


def test_many_distinct_readers_keep_their_own_masks() -> None:
    corpus = corpus_of(*(Fragment(fragment_id=f"f{n:03}", text="rotate", acl=(f"g{n}",)) for n in range(150)))
    searcher = lexical(corpus)
    for _ in range(2):
        for n in range(150):
            assert names(ask(searcher, "rotate", groups=(f"g{n}",))) == [f"f{n:03}"]


# --- what it refuses


def test_a_catalogue_cannot_be_searched() -> None:
    corpus = corpus_of(Fragment(fragment_id="a", text="x"), Fragment(fragment_id="b", text_sha256="0" * 64))
    with pytest.raises(InputError, match=r'1 of 2 fragments have none \(first "b"\): lexical search needs the texts'):
        lexical(corpus)


@pytest.mark.parametrize(
    ("given_parameters", "said"),
    [
        ({"k2": 1.0}, "search.lexical  k2  unknown parameter: known are k1, b, method, stopwords, stemmer"),
        ({"stopword": "none"}, 'stopword  unknown parameter (did you mean "stopwords"?): known are'),
        ({"k1": -1}, "k1  is -1, not a number from 0 to 1000"),
        ({"k1": True}, "k1  is true, not a number"),
        ({"k1": None}, "k1  is null, not a number"),
        ({"b": 1.1}, "b  is 1.1, not a number from 0 to 1"),
        ({"b": "0.5"}, 'b  is "0.5", not a number'),
        ({"method": "lucine"}, 'method  is "lucine", not one of lucene, robertson, atire (did you mean "lucene"?)'),
        ({"method": "bm25+"}, "not one of lucene, robertson, atire"),
        ({"stopwords": "german"}, "not one of none, english"),
        ({"stemmer": 1}, "stemmer  is 1, not one of none, english"),
    ],
)
def test_parameters_are_checked(given_parameters: dict[str, Scalar], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        lexical(texts(a="x"), **given_parameters)


def test_every_wrong_parameter_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        lexical(texts(a="x"), k2=1, b=7, method="x")
    assert [finding.field for finding in error.value.findings] == ["k2", "b", "method"]


def test_a_policy_it_would_not_follow_is_refused() -> None:
    with pytest.raises(ConfigError, match="reranker  stated, but the embedded lexical search does not follow it"):
        Lexical(texts(a="x"), SearchConfig(mode="lexical", reranker="x@1"))


# --- a real collection


def cranfield(name: str) -> list[tuple[str, str]]:
    """(id, text) of each record; the text is its .W part."""
    parts = re.split(r"(?m)^\.I ", (CRANFIELD / name).read_text())[1:]
    return [(part.split("\n", 1)[0].strip(), part.partition(".W\n")[2].strip()) for part in parts]


@pytest.mark.skipif(not CRANFIELD.is_dir(), reason="the shared data are not here")
@pytest.mark.parametrize(
    ("parameters", "ndcg", "average_precision"),
    [({}, 0.3346, 0.2635), ({"stopwords": "english"}, 0.3393, 0.2687)],  # published figures: near .337 and .26
)
def test_cranfield(parameters: dict[str, Scalar], ndcg: float, average_precision: float) -> None:
    qrels: dict[str, dict[str, int]] = {}
    for line in (CRANFIELD / "cranqrel").read_text().splitlines():
        topic, _, document, grade = line.split()
        qrels.setdefault(topic, {})[document] = {1: 4, 2: 3, 3: 2, 4: 1}.get(int(grade), 0)
    searcher = lexical(corpus_of(*(Fragment(fragment_id=n, text=t) for n, t in cranfield("cran.all.1400"))), **parameters)
    run = {str(n): dict(ask(searcher, text, 100)) for n, (_, text) in enumerate(cranfield("cran.qry"), 1)}
    by_topic = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map"}).evaluate(run)
    assert len(by_topic) == 225
    assert sum(m["ndcg_cut_10"] for m in by_topic.values()) / 225 == pytest.approx(ndcg, abs=1e-3)
    assert sum(m["map"] for m in by_topic.values()) / 225 == pytest.approx(average_precision, abs=1e-3)
