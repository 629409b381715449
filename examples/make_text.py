"""Writes the byte-level texts the two examples train on.

    python make_text.py            # dense_gpt/data/text.txt and moe_gpt/data/text.txt

Every line is written in a private language of ten words that share no letter. It begins with one
word and uses a new one now and then, more often as it goes on; everything else it says was said
before. Its last quarter repeats its second quarter to the letter. So nothing about one line helps
with the next, and a model has to look back:

- at all, because without attention it does not know the language;
- far, because the last quarter is known from half a line before and from nowhere else;
- only back, because what comes later holds words that cannot be said yet: averaging over the
  future too makes the guess worse (and finding the very next byte gives the answer away).
"""

import random
import string
from pathlib import Path

LETTERS = string.ascii_letters + string.digits
N_WORDS = 10


def dictionary(rng: random.Random) -> list[str]:
    """Words of two or three letters, no letter used twice."""
    letters = rng.sample(LETTERS, 3 * N_WORDS)
    return ["".join(letters[3 * i : 3 * i + rng.randint(2, 3)]) for i in range(N_WORDS)]


def growing(rng: random.Random, n_bytes: int) -> str:
    """Speech with 1 + 10 (p / n_bytes) ** 2 words known at position p."""
    words = dictionary(rng)
    said, n_known = "", 0
    while len(said) < n_bytes:
        is_time = n_known < 1 + int(N_WORDS * (len(said) / n_bytes) ** 2)
        n_known += is_time
        said += words[n_known - 1] if is_time else rng.choice(words[:n_known])
    return said[:n_bytes]


def line(rng: random.Random, n_bytes: int) -> str:
    """Three quarters of growing speech, then the second quarter again."""
    quarter = n_bytes // 4
    said = growing(rng, 3 * quarter)
    return said + said[quarter : 2 * quarter]


def text(seed: int, n_lines: int, n_bytes: int) -> str:
    """Lines of n_bytes each, newline not counted."""
    rng = random.Random(seed)
    return "".join(line(rng, n_bytes) + "\n" for _ in range(n_lines))


def main() -> None:
    here = Path(__file__).parent
    dense, moe = text(0, 2048, 512), text(1, 4096, 256)
    (here / "dense_gpt" / "data" / "text.txt").write_bytes(dense.encode("ascii"))
    (here / "moe_gpt" / "data" / "text.txt").write_bytes(moe.encode("ascii"))


if __name__ == "__main__":
    main()
