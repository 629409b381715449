"""Other ways to send tokens through the same experts with the same gates."""

from red_team.case import Case

SAME_ROUTES = "Every token reaches the same experts with the same gates"

TRAINER_LOOP = """\
        for e in range(self.n_experts):
            for slot in range(self.top_k):
                hit = chosen[:, slot] == e
                if hit.any():
                    rows = hit.nonzero(as_tuple=True)[0]
                    y = self.experts[e](tokens[rows])
                    out[rows] = out[rows] + weights[rows, slot].unsqueeze(-1) * y
"""
CONSTANTS_LOOP = """\
        for i, expert in enumerate(self.experts):
            for slot in range(top_k):
                rows = (chosen[:, slot] == i).nonzero().squeeze(-1)
                if rows.numel() == 0:
                    continue
                y = expert(flat[rows]) * weights[rows, slot].unsqueeze(-1)
                out = out.index_add(0, rows, y)
"""
SWITCH_LOOP = """\
        out = torch.zeros_like(tokens)
        for e, expert in enumerate(self.experts):
            picked = index == e
            if picked.any():
                out[picked] = expert(tokens[picked])
        out = out * gate[:, None]
"""
YAML_EXPERTS = """\
        self.w_in = nn.ModuleList(
            [nn.Linear(cfg.width, cfg.expert_width) for _ in range(cfg.experts)]
        )
        self.w_out = nn.ModuleList(
            [nn.Linear(cfg.expert_width, cfg.width) for _ in range(cfg.experts)]
        )
"""
YAML_LOOP = """\
        for e in range(self.n):
            token, slot = torch.where(index == e)
            if token.numel() == 0:
                continue
            hidden = F.gelu(self.w_in[e](flat[token]))
            mixed.index_add_(0, token, gates[token, slot, None] * self.w_out[e](hidden))
"""
YAML_SORTED = """\
        order = index.flatten().argsort(stable=True)
        token = order // self.k
        counts = torch.bincount(index.flatten(), minlength=self.n).tolist()
        gathered = flat[token].split(counts)
        outputs = []
        for e, rows in enumerate(gathered):
            if counts[e]:
                outputs.append(self.w_out[e](F.gelu(self.w_in[e](rows))))
        weighted = torch.cat(outputs) * gates.flatten()[order, None]
        mixed = mixed.index_add(0, token, weighted)
"""

CASES = (
    Case(
        name="dispatch-once-per-expert",
        base="trainer_moe",
        family="honest",
        codes=(),
        what=f"{SAME_ROUTES}; both slots of an expert are gathered and run in one call.",
        edits=(
            (
                "model.py",
                TRAINER_LOOP,
                """\
        for e in range(self.n_experts):
            rows, slot = torch.where(chosen == e)
            if rows.numel():
                y = weights[rows, slot].unsqueeze(-1) * self.experts[e](tokens[rows])
                out = out.index_add(0, rows, y)
""",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="dispatch-by-sorting",
        base="trainer_moe",
        family="honest",
        codes=(),
        what=f"{SAME_ROUTES}; pairs are sorted by expert and each expert gets one contiguous slice.",
        edits=(
            (
                "model.py",
                TRAINER_LOOP,
                """\
        flat_choice = chosen.reshape(-1)
        order = torch.argsort(flat_choice, stable=True)
        source = torch.div(order, self.top_k, rounding_mode="floor")
        ends = torch.bincount(flat_choice, minlength=self.n_experts).cumsum(0).tolist()
        gathered = tokens[source]
        pieces, begin = [], 0
        for expert, end in zip(self.experts, ends):
            if end > begin:
                pieces.append(expert(gathered[begin:end]))
            begin = end
        y = torch.cat(pieces) * weights.reshape(-1)[order].unsqueeze(-1)
        out = out.index_add(0, source, y)
""",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="dispatch-all-experts-batched",
        base="trainer_moe",
        family="honest",
        codes=(),
        what=(
            f"{SAME_ROUTES}; weights are stacked in forward, padded groups of rows go through one "
            "batched product, and the padding is masked out of the sum."
        ),
        edits=(
            (
                "model.py",
                TRAINER_LOOP,
                """\
        active, choice, counts = chosen.reshape(-1).unique(return_inverse=True, return_counts=True)
        order = choice.argsort(stable=True)
        place = torch.arange(len(order)) - (counts.cumsum(0) - counts)[choice[order]]
        source = order // self.top_k
        slots = tokens.new_zeros(len(active), int(counts.max()), D)
        slots = slots.index_put((choice[order], place), tokens[source])
        experts = [self.experts[e] for e in active.tolist()]
        up = torch.stack([expert.up.weight for expert in experts])
        down = torch.stack([expert.down.weight for expert in experts])
        y = torch.bmm(F.silu(torch.bmm(slots, up.transpose(1, 2))), down.transpose(1, 2))
        y = y[choice[order], place] * weights.reshape(-1)[order, None]
        out = out.index_add(0, source, y)
""",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="dispatch-without-slot-loop",
        base="constants_moe",
        family="honest",
        codes=(),
        what=f"{SAME_ROUTES}; an expert's rows are found once, and one it gets none of is skipped.",
        edits=(
            (
                "train.py",
                CONSTANTS_LOOP,
                """\
        for i, expert in enumerate(self.experts):
            rows, slots = (chosen == i).nonzero(as_tuple=True)
            if len(rows) == 0:
                continue
            out.index_add_(0, rows, expert(flat[rows]) * weights[rows, slots, None])
""",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="dispatch-by-dense-gates",
        base="constants_moe",
        family="honest",
        codes=(),
        what=(
            "Every expert sees every token and a gate of exactly zero removes what was not routed: more "
            "arithmetic, no indexing, the same output and gradients."
        ),
        edits=(
            (
                "train.py",
                CONSTANTS_LOOP,
                """\
        gates = torch.zeros_like(probs).scatter(1, chosen, weights)
        for i, expert in enumerate(self.experts):
            if (chosen == i).any():
                out = out + gates[:, i, None] * expert(flat)
""",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="switch-dispatch-by-split",
        base="argparse_moe",
        family="honest",
        codes=(),
        what=f"{SAME_ROUTES}; tokens are permuted once, split by expert and put back.",
        edits=(
            (
                "train.py",
                SWITCH_LOOP,
                """\
        order = index.argsort()
        sizes = torch.bincount(index, minlength=len(self.experts)).tolist()
        parts = tokens[order].split(sizes)
        done = [expert(part) for expert, part in zip(self.experts, parts) if len(part)]
        out = torch.zeros_like(tokens).index_copy(0, order, torch.cat(done)) * gate[:, None]
""",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="dispatch-by-sorting-two-processes",
        base="yaml_moe",
        family="honest",
        codes=(),
        what=f"{SAME_ROUTES} on two ranks; rows are sorted by expert before they are gathered.",
        before_launch="torchrun --standalone --nproc-per-node 2 train.py configs/base.yaml",
        after_launch="torchrun --standalone --nproc-per-node 2 train.py configs/base.yaml",
        edits=(("model.py", YAML_LOOP, YAML_SORTED),),
        is_faster=None,
    ),
    Case(
        name="unrouted-experts",
        base="yaml_moe",
        family="honest",
        codes=(),
        what=(
            "One of 64 experts a token, so some get no token in a step and no gradient, before and "
            "after alike; after only sorts the rows."
        ),
        before_launch=(
            "python train.py configs/base.yaml optim.batch_size=4 "
            "model.experts=64 model.experts_per_token=1 model.expert_width=16"
        ),
        after_launch=(
            "python train.py configs/base.yaml optim.batch_size=4 "
            "model.experts=64 model.experts_per_token=1 model.expert_width=16"
        ),
        edits=(("model.py", YAML_LOOP, YAML_SORTED),),
        is_faster=None,
    ),
    Case(
        name="unrouted-experts-regrouped",
        base="yaml_moe",
        family="honest",
        codes=(),
        what=(
            "Micro-batches are merged where some experts get no token in some of them: an expert is "
            "updated if any row of the step reaches it, before and after."
        ),
        before_launch=(
            "python train.py configs/base.yaml optim.batch_size=4 optim.grad_accum_steps=4 "
            "model.experts=32 model.experts_per_token=1 model.expert_width=32"
        ),
        after_launch=(
            "python train.py configs/base.yaml optim.batch_size=16 optim.grad_accum_steps=1 "
            "model.experts=32 model.experts_per_token=1 model.expert_width=32"
        ),
        is_faster=True,
    ),
    Case(
        name="stacked-experts",
        base="yaml_moe",
        family="honest",
        codes=(),
        what=(
            "The experts' Linears become stacked parameters with the same initial numbers, and padded "
            "groups of rows go through one batched product: another layout of the same model. "
            "Gradients are zeros, not None, on both sides where an expert got no token."
        ),
        before_edits=(
            (
                "train.py",
                "        optimizer.zero_grad()\n",
                "        optimizer.zero_grad(set_to_none=False)\n",
            ),
            (
                "train.py",
                "    windows = Windows(",
                "    for parameter in net.parameters():\n"
                "        parameter.grad = torch.zeros_like(parameter)\n"
                "    windows = Windows(",
            ),
        ),
        edits=(
            (
                "model.py",
                YAML_EXPERTS,
                """\
        first = [nn.Linear(cfg.width, cfg.expert_width) for _ in range(cfg.experts)]
        second = [nn.Linear(cfg.expert_width, cfg.width) for _ in range(cfg.experts)]
        self.w_in = nn.Parameter(torch.stack([layer.weight.detach() for layer in first]))
        self.b_in = nn.Parameter(torch.stack([layer.bias.detach() for layer in first]))
        self.w_out = nn.Parameter(torch.stack([layer.weight.detach() for layer in second]))
        self.b_out = nn.Parameter(torch.stack([layer.bias.detach() for layer in second]))
""",
            ),
            (
                "model.py",
                YAML_LOOP,
                """\
        choice = index.flatten()
        order = choice.argsort(stable=True)
        expert, token = choice[order], order // self.k
        counts = torch.bincount(choice, minlength=self.n)
        place = torch.arange(len(order)) - (counts.cumsum(0) - counts)[expert]
        slots = flat.new_zeros(self.n, int(counts.max()), flat.size(-1))
        slots = slots.index_put((expert, place), flat[token])
        hidden = F.gelu(torch.baddbmm(self.b_in[:, None], slots, self.w_in.transpose(1, 2)))
        result = torch.baddbmm(self.b_out[:, None], hidden, self.w_out.transpose(1, 2))
        mixed = mixed.index_add(0, token, result[expert, place] * gates.flatten()[order, None])
""",
            ),
        ),
        is_faster=None,
    ),
)
