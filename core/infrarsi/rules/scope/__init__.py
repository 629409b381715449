"""S4xx: only editable files change; no evaluator, probe or contract is read around or forged."""

from infrarsi.rules.scope import locked_file

MODULES = (locked_file,)
"""The family's rules in the order in which their findings are shown."""
