"""The search: ask for a candidate, tell what came of it."""

from infrarsi.search.searcher import Searcher

__all__ = ["Searcher"]
