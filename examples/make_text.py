"""Writes the byte-level texts the two examples train on.

    python make_text.py            # dense_gpt/data/text.txt and moe_gpt/data/text.txt

Every document is written in a private language: its own letters, some frequent and some rare, and
its own dictionary of words made of them. Nothing about one document helps with the next, so a
model can only learn to read the language off the bytes it has already seen: which letters occur
at all (a glance far back is enough) and how a word went on the last time it was begun.
"""

import random
from pathlib import Path

LETTERS = [chr(c) for c in range(33, 127)]
N_DOCUMENTS = 256
DOCUMENT_BYTES = 4096


def language(rng: random.Random, n_letters: int, n_words: int) -> list[str]:
    """A private dictionary, the most frequent word first."""
    letters = rng.sample(LETTERS, n_letters)
    weights = [1.0 / (rank + 2) for rank in range(n_letters)]
    return ["".join(rng.choices(letters, weights, k=rng.randint(2, 6))) for _ in range(n_words)]


def document(rng: random.Random, n_letters: int, n_words: int) -> str:
    """Words of one language drawn by a Zipf law, separated by single spaces."""
    words = language(rng, n_letters, n_words)
    weights = [1.0 / (rank + 4) for rank in range(n_words)]
    text = " ".join(rng.choices(words, weights, k=DOCUMENT_BYTES // 3))
    return text[: DOCUMENT_BYTES - 1] + "\n"


def text(seed: int, n_letters: int = 24, n_words: int = 96) -> str:
    """All documents, one a line."""
    rng = random.Random(seed)
    return "".join(document(rng, n_letters, n_words) for _ in range(N_DOCUMENTS))


if __name__ == "__main__":
    here = Path(__file__).parent
    for seed, example in enumerate(("dense_gpt", "moe_gpt")):
        (here / example / "data" / "text.txt").write_bytes(text(seed).encode("ascii"))
