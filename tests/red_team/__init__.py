"""Pairs of training folders, cheats and honest speed-ups, that both guards are held against."""
