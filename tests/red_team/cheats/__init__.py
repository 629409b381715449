"""Pairs whose after only looks faster, one file a family."""
