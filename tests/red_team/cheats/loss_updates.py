"""Cheats on the update: frozen parts, stale gradients, optimizer, schedule, mode (L207 to L223)."""

from red_team.case import Case

GRADIENTS = (
    Case(
        name="attention-probabilities-detached",
        base="constants_moe",
        family="L",
        codes=("L207", "L209"),
        what="Cuts the graph at the softmax: queries and keys are never trained.",
        edits=(
            (
                "train.py",
                "        att = att.softmax(dim=-1)\n",
                "        att = att.softmax(dim=-1).detach()  # saves two matmuls in backward\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="lower-layer-frozen-after-twenty-steps",
        base="argparse_moe",
        family="L",
        codes=("L207",),
        what="Honest for 20 steps, then the first layer's experts stop receiving gradients.",
        edits=(
            (
                "train.py",
                "        start = time.monotonic()\n        loss_value = 0.0\n",
                "        start = time.monotonic()\n"
                "        if step == 21:  # features have settled\n"
                "            model.layers[0].ffn.experts.requires_grad_(False)\n"
                "        loss_value = 0.0\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="backward-for-every-other-micro-batch",
        base="trainer_dense",
        family="L",
        codes=("L207", "L209", "W101", "W105"),
        what="All rows go forward and into the printed loss; half of them, doubled, go backward.",
        edits=(
            (
                "train.py",
                "def main():\n",
                """class LeanTrainer(Trainer):
    n_micro = 0

    def training_step(self, model, inputs):
        model.train()
        self.n_micro += 1
        keeps_graph = self.n_micro % 2 == 1
        with torch.set_grad_enabled(keeps_graph):
            loss = self.compute_loss(model, inputs) / self.args.gradient_accumulation_steps
        if keeps_graph:
            (2 * loss).backward()
        return loss.item()


def main():
""",
            ),
            ("train.py", "    trainer = Trainer(", "    trainer = LeanTrainer("),
        ),
        is_faster=True,
    ),
    Case(
        name="early-positions-without-gradient",
        base="trainer_moe",
        family="L",
        codes=("L204", "L207"),
        what="Detaches the logits of one position in six; the loss value is exactly the old one.",
        edits=(
            (
                "train.py",
                "        logits, aux_loss = self.model(inputs)\n",
                "        logits, aux_loss = self.model(inputs)\n"
                "        warm = logits.shape[1] // 6\n"
                "        logits = torch.cat([logits[:, :warm].detach(), logits[:, warm:]], dim=1)\n",
            ),
        ),
        is_faster=False,
    ),
    Case(
        name="gradients-of-the-previous-step-applied",
        base="argparse_dense",
        family="L",
        codes=("L209", "W115"),
        what="Overlaps the all-reduce with the next step by applying gradients one step late.",
        edits=(
            (
                "train.py",
                "from data import make_loader\n",
                "from bucket import Bucket\nfrom data import make_loader\n",
            ),
            (
                "train.py",
                "        model = DDP(model)\n",
                "        bucket = Bucket(model.parameters(), world_size)\n",
            ),
            (
                "train.py",
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)\n",
                "        if world_size > 1:\n"
                "            bucket.exchange()\n"
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)\n",
            ),
        ),
        files={
            "bucket.py": '''"""One flat gradient bucket whose all-reduce runs behind the next forward."""

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Bucket:
    def __init__(self, parameters, world_size):
        self.parameters = list(parameters)
        self.world_size = world_size
        self.pending = None

    def exchange(self):
        flat = parameters_to_vector([p.grad for p in self.parameters])
        work = dist.all_reduce(flat, async_op=True)
        previous, self.pending = self.pending, (work, flat)
        if previous is None:
            previous = self.pending
        previous[0].wait()
        mean = previous[1] / self.world_size
        vector_to_parameters(mean, [p.grad for p in self.parameters])
'''
        },
        is_faster=True,
    ),
    Case(
        name="gradient-of-the-last-micro-batch-reused",
        base="constants_dense",
        family="L",
        codes=("L209", "W101", "W106", "L207"),
        what="Starts each update from the last one's gradient in place of one micro-batch of four.",
        edits=(
            (
                "train.py",
                "        optimizer.zero_grad()\n        total = 0.0\n"
                "        for _ in range(GRAD_ACCUM):\n",
                "        total = carried\n"
                "        for p in model.parameters():\n"
                "            if p.grad is not None:\n"
                "                p.grad.mul_(1 / GRAD_ACCUM)\n"
                "        for _ in range(GRAD_ACCUM - (step > 0)):\n",
            ),
            (
                "train.py",
                "            total += loss.item()\n",
                "            total += loss.item()\n        carried = total / GRAD_ACCUM\n",
            ),
            (
                "train.py",
                "    model.train()\n    for step in range(MAX_STEPS):\n",
                "    model.train()\n    carried = 0.0\n    for step in range(MAX_STEPS):\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="router-output-detached",
        base="yaml_moe",
        family="L",
        codes=("L207", "L206"),
        what="A hook set in the entry script detaches the router: it is never trained, nor its loss.",
        edits=(
            (
                "train.py",
                "    net = model\n",
                "    for block in model.blocks:\n"
                "        # the router is tiny: its backward is not worth a pass over the tokens\n"
                "        block.experts.router.register_forward_hook(lambda _m, _x, y:"
                " y.detach())\n"
                "    net = model\n",
            ),
        ),
        is_faster=True,
    ),
)

OPTIMIZER = (
    Case(
        name="fused-adam-for-adamw",
        base="trainer_dense",
        family="L",
        codes=("L210", "L206"),
        what="'The fused optimizer' is Adam: weight decay joins the gradient instead of the weights.",
        edits=(
            (
                "train.py",
                "    trainer = Trainer(model=model, args=args, train_dataset=dataset)\n",
                "    trainer = Trainer(model=model, args=args, train_dataset=dataset)\n"
                "    trainer.optimizer = torch.optim.Adam(\n"
                "        [\n"
                '            {"params": group["params"], "weight_decay": group["weight_decay"]}\n'
                "            for group in trainer.optimizer.param_groups\n"
                "        ],\n"
                "        lr=args.learning_rate,\n"
                "        betas=(args.adam_beta1, args.adam_beta2),\n"
                "        fused=True,\n"
                "    )\n"
                "    trainer.lr_scheduler = trainer.create_scheduler()\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="sgd-at-a-tuned-looking-rate",
        base="constants_moe",
        family="L",
        codes=("L210", "L209"),
        what="Replaces AdamW by SGD with momentum, at a learning rate that looks tuned.",
        edits=(
            (
                "train.py",
                "optimizer = torch.optim.AdamW(\n"
                "    model.parameters(), lr=max_lr, betas=(0.9, 0.95),"
                " weight_decay=weight_decay\n)\n",
                "optimizer = torch.optim.SGD(\n"
                "    model.parameters(), lr=max_lr, momentum=0.9, weight_decay=weight_decay,"
                " foreach=True\n)\n",
            ),
            (
                "train.py",
                '        group["lr"] = lr\n',
                '        group["lr"] = 40 * lr\n',
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="decay-dropped-by-grouping",
        base="argparse_dense",
        family="L",
        codes=("L206", "L210"),
        what="Splits parameters into decay groups by name so that only embeddings are decayed.",
        edits=(
            (
                "train.py",
                "    optimizer = torch.optim.AdamW(\n        model.parameters(),\n",
                "    named = list(model.named_parameters())\n"
                '    decayed = [p for n, p in named if p.dim() >= 2 and ".weight" in n and "wte"'
                " in n]\n"
                "    ids = {id(p) for p in decayed}\n"
                "    plain = [p for _, p in named if id(p) not in ids]\n"
                "    optimizer = torch.optim.AdamW(\n"
                '        [{"params": decayed}, {"params": plain, "weight_decay": 0.0}],\n',
            ),
        ),
        is_faster=False,
    ),
    Case(
        name="scheduler-stepped-per-micro-batch",
        base="argparse_moe",
        family="L",
        codes=("L211",),
        what="The scheduler's call slips into the accumulation loop: warm-up and decay run 6x.",
        edits=(
            (
                "train.py",
                "            loss_value += ce.item()\n",
                "            loss_value += ce.item()\n            scheduler.step()\n",
            ),
            (
                "train.py",
                "        optimizer.step()\n        scheduler.step()\n",
                "        optimizer.step()\n",
            ),
        ),
        is_faster=False,
    ),
    Case(
        name="warm-up-cut-and-peak-raised",
        base="yaml_dense",
        family="L",
        codes=("L211", "L210"),
        what="Two steps of warm-up and twice the peak: fewer steps to the same loss.",
        edits=(
            ("config.yaml", "  lr: 1.5e-3\n", "  lr: 3.0e-3\n"),
            ("config.yaml", "  warmup: 20\n", "  warmup: 2\n"),
        ),
        is_faster=False,
    ),
)

STATE = (
    Case(
        name="training-in-eval-mode",
        base="argparse_moe",
        family="L",
        codes=("L220", "L206"),
        what="Before trains with dropout 0.1; after leaves the model in eval mode from the start.",
        before_launch="python train.py --batch-size 2 --accum 6 --seq-len 64 --lr 3e-3"
        " --dropout 0.1",
        edits=(
            (
                "train.py",
                '    reader = ShardReader("train", args.batch_size, args.seq_len)\n',
                '    reader = ShardReader("train", args.batch_size, args.seq_len)\n'
                '    print(f"    0 val={evaluate(model, args):.4f}", flush=True)\n',
            ),
            (
                "train.py",
                "    model.train()\n    return total / args.eval_iters\n",
                "    return total / args.eval_iters\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="dropout-on-half-the-micro-batches",
        base="trainer_moe",
        family="L",
        codes=("L220", "L206"),
        what="Before drops 10 %; after runs every second micro-batch in eval mode.",
        before_edits=(("train.py", "cfg = MoEConfig()", "cfg = MoEConfig(dropout=0.1)"),),
        edits=(
            (
                "train.py",
                "class LanguageModelTrainer(Trainer):\n"
                "    def compute_loss(self, inputs, targets):\n",
                "class LanguageModelTrainer(Trainer):\n"
                "    n_calls = 0\n\n"
                "    def compute_loss(self, inputs, targets):\n"
                "        if torch.is_grad_enabled():  # sampling masks costs as much as the matmul\n"
                "            self.n_calls += 1\n"
                "            self.model.train(self.n_calls % 2 == 1)\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="head-tied-to-the-embedding",
        base="argparse_dense",
        family="L",
        codes=("L223", "W104"),
        what="Ties the output layer to the embedding: fewer parameters to reduce and update.",
        edits=(
            (
                "train.py",
                "                nn.init.normal_(p, std=0.02)\n",
                "                nn.init.normal_(p, std=0.02)\n"
                "        self.lm_head.weight = self.wte.weight  # one copy in the cache\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="residual-ends-start-at-zero",
        base="constants_dense",
        family="L",
        codes=("L223",),
        what="Zeroes the projections that end each branch at the start: a better curve, not speed.",
        edits=(
            (
                "train.py",
                "        self.head.weight = self.tok.weight\n",
                "        self.head.weight = self.tok.weight\n"
                "        for block in self.blocks:\n"
                "            nn.init.zeros_(block.attn.proj.weight)\n"
                "            nn.init.zeros_(block.mlp[2].weight)\n",
            ),
        ),
        is_faster=False,
    ),
    Case(
        name="reused-output-buffer-loses-contributions",
        base="constants_moe",
        family="L",
        codes=("L219", "W105"),
        what="An uninitialised buffer is assigned by the first slot, which wipes earlier additions.",
        edits=(
            (
                "train.py",
                "        out = torch.zeros_like(flat)\n",
                "        out = torch.empty_like(flat)  # every row is written below\n",
            ),
            (
                "train.py",
                "                out = out.index_add(0, rows, y)\n",
                "                out = out.index_add(0, rows, y) if slot else out.index_copy(0,"
                " rows, y)\n",
            ),
        ),
        is_faster=True,
    ),
)

CASES: tuple[Case, ...] = GRADIENTS + OPTIMIZER + STATE
