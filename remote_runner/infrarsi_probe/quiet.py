"""Dropout held still in an audited step, so that regrouped rows can be compared number by number.

In such a step dropout draws what it always draws and gives its input back: the generators stay
where they would have been. Compiled modules are given a rate of zero instead, for their code calls
nothing that could be replaced. A `natural` step is audited with dropout as it is.
"""

import torch

from infrarsi_probe.plans import Plan


class QuietPlan(Plan):
    """Holds dropout still in the audited steps, but for the natural ones."""

    def __init__(self, session):
        self._session = session
        config = session.config
        steps = config.redo_steps if config.mode == "redo" else config.audit_steps
        self._steps = set(steps) - set(config.natural_steps)
        self._restore = []
        self.n_dropouts = 0
        self._n_steps = 0
        self._n_dropped = 0.0

    def obeys(self, command):
        """An audit that is asked for while the job runs."""
        if command["type"] == "audit" and not command.get("natural"):
            self._steps.add(command["step"])

    def opens(self, index):
        """Hold it still for this step."""
        if index not in self._steps:
            return
        self._n_steps += 1
        functional = torch.nn.functional
        self._replace(functional, "dropout", self._still_dropout(functional.dropout))
        attention = functional.scaled_dot_product_attention
        self._replace(functional, "scaled_dot_product_attention", self._still_attention(attention))
        for module in self._compiled_dropouts():
            self._replace(module, "p", 0.0)
            self.n_dropouts += 1

    def closes(self, index):
        """Let it go again."""
        while self._restore:
            owner, name, value = self._restore.pop()
            setattr(owner, name, value)

    def evidence(self):
        """How many calls there were to hold still, and how many elements a step drops."""
        dropped = self._n_dropped / max(1, self._n_steps)
        return {"n_dropouts": self.n_dropouts, "dropped_elements": dropped}

    def _replace(self, owner, name, value):
        self._restore.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _compiled_dropouts(self):
        root = self._session.roots.best()
        if root is None or not any("_orig_mod" in m._modules for m in root.modules()):
            return []
        kinds = torch.nn.modules.dropout._DropoutNd
        return [m for m in root.modules() if isinstance(m, kinds) and m.p > 0]

    def _still_dropout(self, real):
        def dropout(input, p=0.5, training=True, inplace=False):
            if p > 0 and training:
                self.n_dropouts += 1
                self._n_dropped += p * input.numel()
                real(input, p, training)
            return input

        return dropout

    def _still_attention(self, real):
        def scaled_dot_product_attention(
            query, key, value, attn_mask=None, dropout_p=0.0, *args, **kwargs
        ):
            if dropout_p > 0:
                self.n_dropouts += 1
                self._n_dropped += dropout_p * query.shape[:-1].numel() * key.shape[-2]
                with torch.no_grad():
                    real(query, key, value, attn_mask, dropout_p, *args, **kwargs)
            return real(query, key, value, attn_mask, 0.0, *args, **kwargs)

        return scaled_dot_product_attention
