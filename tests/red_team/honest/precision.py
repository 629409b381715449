"""Products in 16 bit where weights, optimizer state, routing and loss stay fp32."""

from red_team.case import Case

FP32_KEPT = "Weights, optimizer state and loss stay fp32; only the forward's products are bf16"
FSDP_BEFORE = (
    (
        "train.py",
        "from torch.nn.parallel import DistributedDataParallel\n",
        "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard\n",
    ),
    (
        "train.py",
        "        model = DistributedDataParallel(model)\n",
        """\
        mesh = dist.init_device_mesh("cpu", (world,))
        policy = MixedPrecisionPolicy()
        for layer in model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
""",
    ),
)

CASES = (
    Case(
        name="bf16-autocast",
        base="constants_dense",
        family="honest",
        codes=(),
        what=f"{FP32_KEPT}.",
        edits=(
            (
                "train.py",
                "    logits = model(x)\n    return F.cross_entropy(logits.view",
                '    with torch.autocast("cpu", dtype=torch.bfloat16):\n'
                "        logits = model(x)\n"
                "    return F.cross_entropy(logits.float().view",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="bf16-autocast-by-argument",
        base="trainer_dense",
        family="honest",
        codes=(),
        what=f"{FP32_KEPT}: the argument is switched on and the logits are cast back for the loss.",
        edits=(
            (
                "train.py",
                "        max_steps=4000,\n",
                "        max_steps=4000,\n        bf16=True,\n",
            ),
            (
                "model.py",
                "        logits = self.lm_head(self.norm(x))\n",
                "        logits = self.lm_head(self.norm(x)).float()\n",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="bf16-autocast-two-processes",
        base="yaml_dense",
        family="honest",
        codes=(),
        what=f"{FP32_KEPT}, and so do the gradients that the two ranks average.",
        edits=(("config.yaml", "precision: fp32", "precision: bf16"),),
        is_faster=None,
    ),
    Case(
        name="bf16-autocast-mixture",
        base="trainer_moe",
        family="honest",
        codes=(),
        what=f"{FP32_KEPT}; gate, balance loss and cross entropy are computed in fp32.",
        edits=(
            (
                "train.py",
                "TrainingArguments(learning_rate=3e-3)",
                'TrainingArguments(learning_rate=3e-3, mixed_precision="bf16")',
            ),
            (
                "train.py",
                "F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))",
                "F.cross_entropy(\n"
                "            logits.float().reshape(-1, logits.size(-1)), targets.reshape(-1)\n"
                "        )",
            ),
            (
                "model.py",
                "        probs = torch.softmax(self.gate(tokens), dim=-1)\n",
                '        with torch.autocast("cpu", enabled=False):\n'
                "            probs = torch.softmax(self.gate(tokens.float()), dim=-1)\n",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="bf16-autocast-mixture-by-override",
        base="yaml_moe",
        family="honest",
        codes=(),
        what=f"{FP32_KEPT}; the router and its loss are shielded from autocast.",
        after_launch=(
            "python train.py configs/base.yaml optim.grad_accum_steps=2 precision=bfloat16"
        ),
        edits=(
            (
                "model.py",
                "        scores = self.router(flat)\n",
                '        with torch.autocast("cpu", enabled=False):\n'
                "            scores = self.router(flat.float())\n",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="bf16-autocast-mixture-two-processes",
        base="yaml_moe",
        family="honest",
        codes=(),
        what=f"{FP32_KEPT} on two ranks; the router is shielded from autocast.",
        before_launch="torchrun --standalone --nproc-per-node 2 train.py configs/base.yaml",
        after_launch=(
            "torchrun --standalone --nproc-per-node 2 train.py configs/base.yaml precision=bfloat16"
        ),
        edits=(
            (
                "model.py",
                "        scores = self.router(flat)\n",
                '        with torch.autocast("cpu", enabled=False):\n'
                "            scores = self.router(flat.float())\n",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="sharded-bf16-forward-with-fp32-reduction",
        base="yaml_dense",
        family="honest",
        codes=(),
        what=(
            "FSDP2 on both sides; after gathers weights in bf16 for forward and backward, reduces "
            "gradients in fp32 and updates fp32 shards."
        ),
        before_edits=FSDP_BEFORE,
        edits=(
            (
                "train.py",
                "policy = MixedPrecisionPolicy()",
                "policy = MixedPrecisionPolicy(\n"
                "            param_dtype=torch.bfloat16, reduce_dtype=torch.float32\n"
                "        )",
            ),
            (
                "model.py",
                "        q, k = rotate(q, cos, sin), rotate(k, cos, sin)\n",
                "        q, k = rotate(q, cos, sin).type_as(v), rotate(k, cos, sin).type_as(v)\n",
            ),
            (
                "model.py",
                "        weights = torch.softmax(weights + future, dim=-1)\n",
                "        weights = torch.softmax(weights + future, dim=-1).type_as(v)\n",
            ),
        ),
        is_faster=None,
    ),
    Case(
        name="fp16-scaler-kept",
        base="constants_dense",
        family="honest",
        codes=(),
        what=(
            "Both sides use fp16 autocast with a live scaler, unscaling before the clip; after adds "
            "a foreach optimizer and fused attention."
        ),
        before_edits=(
            ("train.py", "N_LAYER = 3\n", "N_LAYER = 1\n"),
            ("train.py", "GRAD_ACCUM = 4\n", "GRAD_ACCUM = 1\n"),
            (
                "train.py",
                "    logits = model(x)\n    return F.cross_entropy(logits.view",
                '    with torch.autocast("cpu", dtype=torch.float16):\n'
                "        logits = model(x)\n"
                "    return F.cross_entropy(logits.float().view",
            ),
            (
                "train.py",
                "\n    model.train()\n    for step in range(MAX_STEPS):\n",
                '\n    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)\n'
                "    model.train()\n    for step in range(MAX_STEPS):\n",
            ),
            (
                "train.py",
                "            loss.backward()\n",
                "            scaler.scale(loss).backward()\n",
            ),
            (
                "train.py",
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)\n"
                "        optimizer.step()\n",
                "        scaler.unscale_(optimizer)\n"
                "        torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)\n"
                "        scaler.step(optimizer)\n"
                "        scaler.update()\n",
            ),
        ),
        edits=(
            (
                "train.py",
                "weight_decay=WEIGHT_DECAY\n",
                "weight_decay=WEIGHT_DECAY, foreach=True\n",
            ),
            ("train.py", "        mask = torch.tril(torch.ones(t, t, dtype=torch.bool))\n", ""),
            (
                "train.py",
                "        scores = (q @ k.transpose(-2, -1)) / math.sqrt(c // N_HEAD)\n",
                "",
            ),
            ("train.py", '        scores = scores.masked_fill(~mask, float("-inf"))\n', ""),
            ("train.py", "        weights = F.softmax(scores, dim=-1)\n", ""),
            (
                "train.py",
                "        y = (weights @ v).transpose(1, 2)",
                "        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)",
            ),
        ),
        is_faster=None,
    ),
)
