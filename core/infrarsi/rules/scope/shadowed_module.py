"""S413: no file of the workspace takes the place of an installed or standard module.

Python looks beside the script first. A new `random.py`, `typing_extensions.py`, `torch/` or
`sitecustomize.py` there is loaded by torch and by everything else in the place of the real one.

Mend it by giving the file another name, or by moving it into a package of the project.
"""

import ast
import posixpath
import sys
from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.launch import Launch
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.rules.change import Change
from infrarsi.rules.remembered import remembered
from infrarsi.rules.scope.everywhere import warned

CODE = "S413"
_SITE = frozenset({"sitecustomize", "usercustomize"})
_LOADED_BY_TORCH = frozenset(
    (
        *("torch", "numpy", "typing_extensions", "triton", "packaging", "filelock", "sympy"),
        *("networkx", "jinja2", "markupsafe", "fsspec", "mpmath", "setuptools"),
        *("pkg_resources", "functorch", "torchgen", "nvidia", "infrarsi", "infrarsi_probe"),
    )
)
_INSTALLED = frozenset(
    (
        *("torchvision", "torchaudio", "torchdata", "torchao", "scipy", "pandas", "yaml"),
        *("tqdm", "psutil", "transformers", "accelerate", "deepspeed", "lightning"),
        *("pytorch_lightning", "lightning_fabric", "datasets", "tokenizers", "safetensors"),
        *("tiktoken", "sentencepiece", "einops", "wandb", "tensorboard", "omegaconf", "hydra"),
        *("pydantic", "requests", "attr", "attrs", "six", "certifi", "urllib3", "idna"),
        *("regex", "huggingface_hub", "cupy", "jax", "flash_attn", "apex", "xformers"),
        *("bitsandbytes", "peft", "trl", "fire", "click", "rich", "absl", "msgpack", "joblib"),
        *("sklearn", "matplotlib", "PIL", "h5py", "pyarrow", "transformer_engine", "megatron"),
        *("liger_kernel", "pynvml", "simple_parsing", "dotenv"),
    )
)
_SUFFIXES = (".py", ".pyc", ".so", ".pyd", ".pyi")


def find(change: Change) -> Iterator[Violation]:
    """An error for each new file under which another module is found."""
    if change.was is None:
        return
    known = set(change.was.sources.paths())
    fresh = [path for path in change.now.sources.paths() if path not in known]
    told: set[str] = set()
    for root in _roots(change.now.launch) if fresh else ():
        before = {_top(path, root) for path in known}
        for path in fresh:
            name = _top(path, root)
            if name is None or name in told or name in before:
                continue
            severity = _weigh(name, change.was)
            if severity is not None:
                told.add(name)
                yield _found(path, name, severity)


def _found(path: str, name: str, severity: Severity) -> Violation:
    whose = "the site's own start-up" if name in _SITE else f"the module `{name}` that is installed"
    return warned(
        CODE,
        f"{path} is new and is loaded in the place of {whose}; the contract holds that no file of "
        "the workspace does that.",
        Place(file=path, line=1, end_line=1, end_column=1),
        severity,
    )


def _roots(launch: Launch) -> list[str]:
    """The folders of the workspace in which Python looks ahead of its own."""
    listed = [part for part in launch.env.get("PYTHONPATH", "").split(":") if part]
    inside = [posixpath.normpath(part) for part in listed if not posixpath.isabs(part)]
    beside = posixpath.dirname(launch.script)
    return list(dict.fromkeys([beside, "", *("" if part == "." else part for part in inside)]))


def _top(path: str, root: str) -> str | None:
    """The module's name a path is found under from `root`; None where it is no code there."""
    inside = path if not root else path.removeprefix(f"{root}/")
    if (root and inside == path) or not path.endswith(_SUFFIXES):
        return None
    return inside.partition("/")[0].partition(".")[0]


def _weigh(name: str, was: Program) -> Severity | None:
    if name in sys.stdlib_module_names or name in _SITE or name in _LOADED_BY_TORCH:
        return "error"
    if name in _imported(was):
        return "error"
    return "warning" if name in _INSTALLED else None


@remembered
def _imported(was: Program) -> frozenset[str]:
    """Modules of other libraries that the baseline imports."""
    if not was.is_followed:
        return frozenset()
    found: set[str] = set()
    for scope in was.project.modules.values():
        for events in scope.events.values():
            for event in events:
                if event.kind == "import":
                    found |= _foreign(was, event.node, scope.source.file)
    return frozenset(found)


def _foreign(was: Program, node: ast.AST, file: str) -> set[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
        names = [node.module]
    else:
        names = []
    return {name.partition(".")[0] for name in names if was.project.find_module(name, file) is None}
