"""E508: caches and pools of the device are not kept warm across runs.

A compile cache that is shipped or kept, lines pinned in the second-level cache, or a pool that
outlives the run make a candidate start where the baseline could not. Calls and variables that
set such things up and were not there before are looked for.

Mend it by taking them out.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import CONFIG_PATH, Violation, place_of
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, callee
from infrarsi.rules.remembered import remembered

CODE = "E508"
_CALLS = {
    *(
        "load_cache_artifacts",
        "save_cache_artifacts",
        "cudaDeviceSetLimit",
        "cudaCtxResetPersistingL2Cache",
    ),
    *(
        "cuCtxSetLimit",
        "cudaStreamSetAttribute",
        "MemPool",
        "use_mem_pool",
        "CUDAPluggableAllocator",
    ),
    *(
        "change_current_allocator",
        "caching_allocator_alloc",
        "cudaHostRegister",
        "aoti_load_package",
    ),
    *("set_stance", "graph_pool_handle", "cudart"),
}
_HARD = {"load_cache_artifacts", "cudaDeviceSetLimit", "cuCtxSetLimit", "aoti_load_package"}
_VARIABLES = (
    *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_FX_GRAPH_CACHE"),
    *(
        "TORCHINDUCTOR_AUTOGRAD_CACHE",
        "CUDA_CACHE_PATH",
        "TORCH_EXTENSIONS_DIR",
        "PYTORCH_KERNEL_CACHE",
    ),
    *("XLA_PERSISTENT_CACHE", "NUMBA_CACHE_DIR", "TORCHINDUCTOR_REMOTE", "CUDA_CACHE_DISABLE"),
)
_HELD = "the contract holds that no cache of the device is kept across runs"


def find(change: Change) -> Iterator[Violation]:
    """An error for shipped caches and limits of the device, a warning for the rest."""
    if change.sides is None:
        return
    now, was = change.sides
    for call in added(_kept(now), _kept(was), callee):
        yield violation(
            CODE,
            f"`{call.signature[:60]}` keeps a cache or pool of the device; {_HELD}.",
            severity="error" if call.name in _HARD else "warning",
            place=call.place,
        )
    before = _variables(was)
    for name, place in _variables(now).items():
        if name not in before:
            text = change.sources.text(CONFIG_PATH)
            line = place_of(text, change.contract.job, "launch") if text is not None else None
            yield violation(
                CODE,
                f"`{name}` keeps compiled code at a place of its own; {_HELD}.",
                severity="warning",
                place=place or line,
            )


def _kept(program: Program) -> list[Call]:
    return [call for call in program.called(_CALLS) if not call.is_dead]


@remembered
def _variables(program: Program) -> dict[str, Place | None]:
    """Variables that say where compiled code is kept, on the launch line or named in code."""
    found: dict[str, Place | None] = {
        name: None for name in program.launch.env if name.startswith(_VARIABLES)
    }
    for source in program.project.files.values():
        if not any(name in source.text for name in _VARIABLES):
            continue
        for node in source.nodes:
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and text.startswith(_VARIABLES):
                found[text] = source.place(node)
    return found
