"""All cases of the red team, gathered from the modules of `cheats` and `honest`.

A case's name is its key everywhere (recorded evidence, tables), so names are unique.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from red_team import cheats, honest
from red_team.case import Case


def gather(package: ModuleType) -> tuple[Case, ...]:
    """Return the cases of every module of a package, in the modules' order by name."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    return tuple(case for module in modules for case in module.CASES)


CHEATS = gather(cheats)
HONEST = gather(honest)
CASES = CHEATS + HONEST


def by_name() -> dict[str, Case]:
    """Return the cases by name; raises ValueError where two have the same."""
    cases = {case.name: case for case in CASES}
    if len(cases) < len(CASES):
        names = [case.name for case in CASES]
        raise ValueError(f"Used twice: {sorted({name for name in names if names.count(name) > 1})}")
    return cases
