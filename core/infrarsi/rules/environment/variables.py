"""E505: environment variables that change arithmetic or transport stay.

Some variables lower the precision of products, pick other kernels or change how processes talk
to each other. Those of the launch line and those set in code are compared. Numbers of threads,
the allocator's settings and where logs go are free.

Mend it by restoring the variable.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import CONFIG_PATH, Severity, Violation, place_of
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.aliases import ALIASES, rank_alias
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment
from infrarsi.rules.remembered import remembered

CODE = "E505"
_ARITHMETIC = (
    *("NVIDIA_TF32", "TORCH_ALLOW_TF32", "CUBLAS_", "CUDNN_", "ONEDNN_DEFAULT_FPMATH", "DNNL_"),
    *("MKL_CBWR", "MKLDNN_", "TORCH_CUDNN", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS"),
    *("NVTE_", "TORCH_BLAS", "ROCBLAS_", "HIPBLASLT_", "MIOPEN_", "XLA_FLAGS", "DISABLE_FP8"),
    *("ONEDNN_", "FLASH_ATTENTION_", "XFORMERS_", "OPENBLAS_CORETYPE", "MKL_DEBUG_CPU_TYPE"),
)
_TRANSPORT = (
    *("NCCL_", "GLOO_", "TORCH_NCCL", "UCX_", "FI_", "TORCH_DISTRIBUTED", "MASTER_", "RCCL_"),
    *("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "TP_SOCKET", "CUDA_MODULE_LOADING"),
    *(
        "TORCHINDUCTOR_",
        "TRITON_",
        "PYTORCH_JIT",
        "TORCHDYNAMO_",
        "TORCH_COMPILE",
        "PYTORCH_NVFUSER",
    ),
    *("PYTHONHASHSEED", "FLUSH_", "CUDA_CACHE", "CUDA_FORCE"),
)
_FREE = ("NCCL_DEBUG", "TORCH_NCCL_TRACE", "MASTER_ADDR", "MASTER_PORT", "TORCH_DISTRIBUTED_DEBUG")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_HELD = "the contract holds the variables that change arithmetic or transport"


def find(change: Change) -> Iterator[Violation]:
    """An error for a variable of arithmetic, a warning for one of transport or compilation."""
    if change.was is None:
        return
    yield from _launch(change, change.now.launch.env, change.was.launch.env)
    if change.sides is None:
        return
    now, was = change.sides
    yield from _read_by_code(change, now, was)
    after, before = _set_in_code(now), _set_in_code(was)
    for name, (value, place) in after.items():
        held = before.get(name)
        if held is None or held[0] != value:
            yield from _told(name, value, held[0] if held is not None else None, place)
    for name, (value, place) in before.items():
        if name not in after and name not in now.launch.env:
            for found in _told(name, None, value, None):
                yield found.model_copy(update={"contract_place": place})


def _read_by_code(change: Change, now: Program, was: Program) -> Iterator[Violation]:
    """Variables of the launch line that are new and that code looks at."""
    for name, value in now.launch.env.items():
        known = was.launch.env.get(name) == value or name.startswith((*_ARITHMETIC, *_TRANSPORT))
        if known or name in _THREADS or any(rank_alias(c, name) is not None for c in ALIASES):
            continue
        piece = _reader(now, name)
        if piece is not None:
            yield violation(
                CODE,
                f"The launch line sets `{name}` to `{value}`, and `{piece.text[:50]}` reads it; "
                f"{_HELD}.",
                severity="warning",
                place=piece.place,
            )


def _reader(program: Program, name: str) -> Fragment | None:
    for file, source in program.project.files.items():
        for node in source.nodes if name in source.text else ():
            if isinstance(node, ast.Constant) and node.value == name:
                around = source.parents.get(node, node)
                return Fragment(program, program.project.scope_of(file, node), around)
    return None


def _launch(change: Change, now: dict[str, str], was: dict[str, str]) -> Iterator[Violation]:
    text = change.sources.text(CONFIG_PATH)
    place = place_of(text, change.contract.job, "launch") if text is not None else None
    for name in sorted({*now, *was}):
        if now.get(name) != was.get(name):
            yield from _told(name, now.get(name), was.get(name), place)


def _told(name: str, now: str | None, was: str | None, place: Place | None) -> Iterator[Violation]:
    if name.startswith(_FREE):
        return
    severity: Severity
    if name.startswith(_ARITHMETIC):
        severity = "error"
    elif name.startswith(_TRANSPORT):
        severity = "warning"
    else:
        return
    yield violation(
        CODE,
        f"`{name}` is {_shown(now)} instead of {_shown(was)}; {_HELD}.",
        severity=severity,
        place=place,
    )


def _shown(value: str | None) -> str:
    return "not set" if value is None else f"`{value}`"


@remembered
def _set_in_code(program: Program) -> dict[str, tuple[str, Place]]:
    """Variables the code sets, with their values as spelled."""
    return dict(program.by_file(_set_in_file))


def _set_in_file(program: Program, module: Scope) -> Iterator[tuple[str, tuple[str, Place]]]:
    source = module.source
    if "environ" not in source.text and "putenv" not in source.text:
        return
    for node in source.nodes:
        for key, value in _assignments(node):
            scope = program.project.scope_of(source.file, node)
            name = program.evaluator.value(key, program.evaluator.frame(scope))
            if isinstance(name, Known) and isinstance(name.value, str):
                text = program.spell(value, scope).strip("'\"")
                yield name.value, (text, source.place(node))


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Names and values a statement or call writes into the environment."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=owner, slice=key)], value=value):
            if _is_environment(owner):
                yield key, value
        case ast.Call(func=ast.Attribute(attr="putenv"), args=[key, value]):
            yield key, value
        case ast.Call(func=ast.Attribute(value=owner)) if _is_environment(owner):
            yield from _given(node)
        case _:
            pass


def _given(call: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`os.environ.setdefault(...)` and `os.environ.update(...)`."""
    match call:
        case ast.Call(func=ast.Attribute(attr="setdefault"), args=[key, value]):
            yield key, value
        case ast.Call(func=ast.Attribute(attr="update"), args=[ast.Dict() as given]):
            yield from ((k, v) for k, v in zip(given.keys, given.values, strict=True) if k)
        case ast.Call(func=ast.Attribute(attr="update"), keywords=keywords):
            yield from ((ast.Constant(k.arg), k.value) for k in keywords if k.arg is not None)
        case _:
            pass


def _is_environment(node: ast.expr) -> bool:
    return unparse(node).rpartition(".")[2] == "environ"
