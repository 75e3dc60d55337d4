"""Embedded search, and the protocol that a customer's own search plugs into."""

from tripos.search.protocol import Factory, Hit, Query, Searcher

__all__ = ["Factory", "Hit", "Query", "Searcher"]
