"""What is drawn: seeds, orders, audited steps and lengths, none of which a candidate can foresee.

The entropy is journalled, so that a resumed campaign draws the same again.
"""

import random
import secrets

from infrarsi_runner.context import Context


def draw(context: Context, *names: object) -> random.Random:
    """A generator for the thing of those names, the same however often it is asked for."""
    entropy = context.once("entropy", str, lambda: secrets.token_hex(16))
    return random.Random("/".join([entropy, *map(str, names)]))  # noqa: S311
