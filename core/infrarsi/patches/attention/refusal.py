"""How the readers of this package say that code is not attention."""


class NotAttention(Exception):
    """Why the chain is not attention, in one sentence; caught by `chain.attention_in`."""
