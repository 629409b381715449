"""The probe: enters the training process through the environment and writes down what it sees.

Standard library and the user's torch only (Python 3.9+, torch 2.3+); it imports nothing of ours.
`enter/sitecustomize.py` is the door, `start.py` waits for torch, `hooks.py` listens, `steps.py`
says where a step ends, `session.py` does what the mode asks, `evidence.py` writes the file.

What it sees are hints: a hostile job can defeat anything in its own process. What decides is
outside it: the runner's clock, the redone update, the endurance run.

What the hooks cannot see, and what then stands in the evidence:
- weights changed by hand, without a `torch.optim.Optimizer` (`unsupported`, or no step at all);
- gradients taken with `torch.autograd.grad` instead of backward (`no_backward`);
- a root module called inside one compiled function, or scripted (rows and tokens stay 0);
- seeds given to a `torch.Generator` or to `numpy.random.default_rng` (not shifted);
- an optimizer's step compiled with `fullgraph=True` refuses any hook: the job fails;
- `ignore_index` of a loss inside compiled code (positions are counted against -100).
"""
