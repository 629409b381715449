"""Recognising attention that is written out by hand, by what it computes."""
