"""Everything the probe hangs into torch, and the check that it still hangs there.

Wrappers step aside at once while code is being compiled, so that compiled code holds nothing of
them. The global forward hooks stand only until the first step ends: a hook on the root takes
their place, so the one recompilation this costs falls before any window.
"""

import functools
import sys
import threading
import warnings

import torch
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer
from torch.utils.data import dataloader

COMPILE_WARNING = "Using `torch.compile\\(module\\)` when there are global hooks"


class Hooks:
    """The hooks of one session."""

    def __init__(self, session):
        self._session = session
        self._depth = threading.local()
        self._handles = []
        self._backward = None
        self._compiled = {}

    def install(self):
        """Hang in everything. Called once, when torch has just been imported."""
        warnings.filterwarnings("ignore", message=COMPILE_WARNING)
        self._optimizer_hooks()
        self._backward = _wrap(torch.autograd, "backward", self._backward_wrapper)
        _wrap(torch.nn.functional, "cross_entropy", self._cross_entropy_wrapper)
        _wrap(torch.amp.GradScaler, "step", self._scaler_wrapper)
        _wrap(dataloader._BaseDataLoaderIter, "__next__", self._next_wrapper)
        _wrap(torch.nn.Module, "compile", self._compile_wrapper)
        self._handles = [
            torch_module.register_module_forward_pre_hook(self._global_pre),
            torch_module.register_module_forward_hook(self._global_post, always_call=True),
        ]

    def broken(self):
        """What of the hooks that must last is no longer in place."""
        found = []
        if torch.autograd.backward is not self._backward:
            found.append("torch.autograd.backward replaced")
        for name in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"):
            hooks = getattr(torch_optimizer, name).values()
            if not any(getattr(h, "of_the_probe", False) for h in hooks):
                found.append("optimizer hooks removed")
        return tuple(dict.fromkeys(found))

    def _optimizer_hooks(self):
        session = self._session

        def begins(optimizer, args, kwargs):
            session.optimizer_begins(optimizer)

        def ends(optimizer, args, kwargs):
            session.optimizer_ends(optimizer)

        for hook in (begins, ends):
            hook.of_the_probe = True
            hook._torchdynamo_disable = True
        torch_optimizer.register_optimizer_step_pre_hook(begins)
        torch_optimizer.register_optimizer_step_post_hook(ends)

    def _backward_wrapper(self, real):
        session = self._session

        def backward(tensors, *args, **kwargs):
            if torch.compiler.is_compiling() or not session.backward_begins(tensors):
                return real(tensors, *args, **kwargs)
            try:
                return real(tensors, *args, **kwargs)
            finally:
                session.backward_ends()

        return backward

    def _cross_entropy_wrapper(self, real):
        session = self._session

        def cross_entropy(input, target, *args, **kwargs):
            if torch.compiler.is_compiling():
                return real(input, target, *args, **kwargs)
            ignored = kwargs.get("ignore_index", args[2] if len(args) > 2 else -100)
            session.loss_target(target, ignored)
            return real(input, target, *args, **kwargs)

        return cross_entropy

    def _scaler_wrapper(self, real):
        session = self._session

        def step(scaler, optimizer, *args, **kwargs):
            calls = session.machine.n_optimizer_calls
            result = real(scaler, optimizer, *args, **kwargs)
            if session.machine.n_optimizer_calls == calls:
                session.optimizer_skipped(optimizer)
            return result

        return step

    def _next_wrapper(self, real):
        session = self._session

        def fetch(loader):
            session.data_begins()
            try:
                return real(loader)
            finally:
                session.data_ends()

        return fetch

    def _compile_wrapper(self, real):
        hooks = self

        def compile(module, *args, **kwargs):
            real(module, *args, **kwargs)
            inner = module._compiled_call_impl

            def call(*a, **k):
                outermost = hooks._compiled_call(module, a, k)
                result = inner(*a, **k)
                if outermost:
                    hooks._session.forward_ends(module)
                return result

            module._compiled_call_impl = call

        return compile

    def _compiled_call(self, module, args, kwargs):
        if torch.compiler.is_compiling() or getattr(self._depth, "n", 0):
            return False
        chosen = self._session.roots.chosen
        if chosen is not None and chosen is not module:
            return False
        self._session.forward_begins(module, args, kwargs)
        return self._session.phases is not None

    def _global_pre(self, module, args):
        if torch.compiler.is_compiling():
            return
        depth = getattr(self._depth, "n", 0)
        self._depth.n = depth + 1
        if depth == 0:
            self._session.forward_begins(module, args, _call_kwargs())

    def _global_post(self, module, args, output):
        if torch.compiler.is_compiling():
            return
        self._depth.n = max(0, getattr(self._depth, "n", 1) - 1)
        if self._depth.n == 0 and self._session.phases is not None:
            self._session.forward_ends(module)

    def narrow(self, root):
        """From the first step's end on listen to the root alone."""
        for handle in self._handles:
            handle.remove()
        self._depth.n = 0
        session = self._session

        def begins(module, args, kwargs):
            if not torch.compiler.is_compiling():
                session.forward_begins(module, args, kwargs)

        def ends(module, args, output):
            if not torch.compiler.is_compiling():
                session.forward_ends(module)

        if root is not None:
            # First of all hooks: FSDP's own puts gathered parameters in place of the sharded ones.
            root.register_forward_pre_hook(begins, prepend=True, with_kwargs=True)
            if session.phases is not None:
                root.register_forward_hook(ends)


def _call_kwargs():
    """Keyword arguments of the module call whose global hook is running.

    Global hooks are not given them; the frame that calls the hook has them.
    """
    frame = sys._getframe(2)
    for _ in range(3):
        if frame is None:
            break
        if frame.f_code.co_filename == torch_module.__file__ and "kwargs" in frame.f_locals:
            return frame.f_locals["kwargs"] or {}
        frame = frame.f_back
    return {}


def _wrap(owner, name, make):
    real = getattr(owner, name)
    wrapper = functools.wraps(real)(make(real))
    setattr(owner, name, wrapper)
    return wrapper


def install(session):
    """Hang the session's hooks into torch."""
    hooks = Hooks(session)
    hooks.install()
    session.narrow = hooks.narrow
    session.installed = hooks
