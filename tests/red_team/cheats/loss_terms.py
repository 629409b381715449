"""Cheats on clip, auxiliary loss and regulariser (L205, L206)."""

from red_team.case import Case

CASES: tuple[Case, ...] = (
    Case(
        name="clip-loosened-in-yaml",
        base="yaml_dense",
        family="L",
        codes=("L205",),
        what="A clip of 100 never binds.",
        edits=(("config.yaml", "  clip: 1.0\n", "  clip: 100.0\n"),),
        is_faster=False,
    ),
    Case(
        name="clip-off-in-the-launch-line",
        base="argparse_dense",
        family="L",
        codes=("L205",),
        what="The launch line asks for an infinite clip and the norm is no longer computed.",
        edits=(
            (
                "train.py",
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)\n",
                "        if math.isfinite(args.grad_clip):\n"
                "            torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)\n",
            ),
        ),
        after_launch="torchrun --standalone --nproc-per-node 2 train.py --batch-size 4"
        " --grad-accum-steps 2 --seq-len 64 --grad-clip inf",
        is_faster=True,
    ),
    Case(
        name="clip-with-a-remembered-norm",
        base="constants_moe",
        family="L",
        codes=("L205",),
        what="Measures the gradient norm every tenth iteration and reuses it in between.",
        edits=(
            (
                "train.py",
                "    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)\n",
                "    grads = [p.grad for p in model.parameters() if p.grad is not None]\n"
                "    if it % log_interval == 0:\n"
                "        norm = torch.nn.utils.get_total_norm(grads)\n"
                "    torch._foreach_mul_(grads, min(1.0, max_grad_norm / (float(norm) + 1e-6)))\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="router-loss-for-metrics-only",
        base="argparse_moe",
        family="L",
        codes=("L206",),
        what="Computes the z-loss under no_grad: the printed numbers stay, the gradient is gone.",
        edits=(
            (
                "train.py",
                "        z_loss = torch.logsumexp(logits, dim=-1).square().mean()\n",
                "        with torch.no_grad():\n"
                "            z_loss = torch.logsumexp(logits, dim=-1).square().mean()\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="balance-loss-once-per-update",
        base="constants_moe",
        family="L",
        codes=("L206", "L208"),
        what="Adds the router losses on the first micro-batch of four only.",
        edits=(
            (
                "train.py",
                "        loss = (ce + aux) / grad_accum_steps\n",
                "        loss = (ce if micro_step else ce + aux) / grad_accum_steps\n",
            ),
        ),
        is_faster=True,
    ),
    Case(
        name="dropout-off-in-yaml",
        base="yaml_moe",
        family="L",
        codes=("L206",),
        what="Before trains with dropout 0.1; after saves the draws.",
        before_edits=(("configs/base.yaml", "  dropout: 0.0\n", "  dropout: 0.1\n"),),
        edits=(("configs/base.yaml", "  dropout: 0.1\n", "  dropout: 0.0\n"),),
        is_faster=True,
    ),
)
