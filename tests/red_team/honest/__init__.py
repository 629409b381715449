"""Pairs whose after is an honest change, however suspicious it looks."""
