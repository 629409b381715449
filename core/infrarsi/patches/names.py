"""What a name in one file stands for, by whatever alias it was imported.

`F.softmax` is `torch.nn.functional.softmax`. Leaves out values (see `attention.scope`).
"""

import libcst as cst

from infrarsi.patches.syntax import dotted, walk


class Names:
    """The imports and plain aliases of one module."""

    def __init__(self, tree: cst.Module) -> None:
        """Collect them from the whole file, functions included."""
        self._full: dict[str, str] = {}
        for node in walk(tree):
            if isinstance(node, cst.Import):
                self._add_import(node)
            elif isinstance(node, cst.ImportFrom):
                self._add_import_from(node)
        self._imported = dict(self._full)
        for node in walk(tree):
            if isinstance(node, cst.Assign) and len(node.targets) == 1:
                self._add_alias(node.targets[0].target, node.value)

    def full(self, node: cst.CSTNode | None) -> str:
        """The full dotted name, with the first part resolved; "" where it is no name."""
        name = dotted(node)
        if name is None:
            return ""
        head, _, rest = name.partition(".")
        return ".".join(filter(None, (self._full.get(head, head), rest)))

    def spell(self, full: str) -> str | None:
        """How this file can write that full name with what it imports; None if it cannot."""
        parts = full.split(".")
        for n in range(len(parts), 0, -1):
            prefix = ".".join(parts[:n])
            for alias, meaning in self._imported.items():
                if meaning == prefix:
                    return ".".join((alias, *parts[n:]))
        return None

    def _add_import(self, node: cst.Import) -> None:
        for alias in node.names:
            name = alias.evaluated_name
            if alias.evaluated_alias:
                self._full[alias.evaluated_alias] = name
            else:
                head = name.partition(".")[0]
                self._full[head] = head

    def _add_import_from(self, node: cst.ImportFrom) -> None:
        if isinstance(node.names, cst.ImportStar):
            return
        module = "." * len(node.relative) + (dotted(node.module) or "")
        for alias in node.names:
            name = alias.evaluated_name
            self._full[alias.evaluated_alias or name] = f"{module}.{name}" if module else name

    def _add_alias(self, target: cst.CSTNode, value: cst.BaseExpression) -> None:
        full = self.full(value)
        if isinstance(target, cst.Name) and full.startswith("torch."):
            self._full.setdefault(target.value, full)
