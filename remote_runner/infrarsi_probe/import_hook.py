"""Calls a function once a module has been imported whole; touches nothing else of importing."""

import sys
from importlib.abc import MetaPathFinder


class _AfterImport(MetaPathFinder):
    def __init__(self, name, call):
        self._name = name
        self._call = call

    def find_spec(self, fullname, path=None, target=None):
        """The spec the other finders give, its loader made to call back at the end."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                self._listen(spec)
                return spec
        return None

    def _listen(self, spec):
        loader, call = spec.loader, self._call
        load = loader.exec_module

        def exec_module(module):
            load(module)
            call()

        loader.exec_module = exec_module


def after_import(name, call):
    """Call `call()` as soon as module `name` is imported; at once where it is already."""
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _AfterImport(name, call))
