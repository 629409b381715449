"""S4xx: only editable files change; no evaluator, probe or contract is read around or forged."""

from infrarsi.rules.scope import (
    camouflage,
    contract_weakened,
    escape,
    forged_result,
    guards_removed,
    introspection,
    locked_file,
    obfuscation,
    observer,
    probe_disturbed,
    replaced_function,
    results_changed,
    shadow_configuration,
    shadowed_module,
    silent_fallback,
    special_case,
)

MODULES = (
    locked_file,
    observer,
    introspection,
    forged_result,
    replaced_function,
    probe_disturbed,
    escape,
    contract_weakened,
    silent_fallback,
    obfuscation,
    shadow_configuration,
    camouflage,
    shadowed_module,
    special_case,
    guards_removed,
    results_changed,
)
"""The family's rules in the order in which their findings are shown."""
