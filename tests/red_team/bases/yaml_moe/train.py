"""python train.py CONFIG [section.key=value ...]"""

import os
import sys
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn.functional as F

from configuration import load_config
from dataset import Windows
from model import MoEDecoder


def main(argv):
    config = load_config(argv[0], argv[1:])
    optim = config.optim
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        dist.init_process_group(backend="gloo")

    torch.manual_seed(config.seed)
    model = MoEDecoder(config.model, config.data.context)
    net = model
    if world > 1:
        net = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(
        net.parameters(),
        lr=optim.max_lr,
        betas=(0.9, 0.98),
        weight_decay=optim.weight_decay,
        foreach=False,
    )
    windows = Windows(config.data.characters, config.data.context, config.seed + rank)
    if config.precision == "bfloat16":
        precision = torch.autocast("cpu", torch.bfloat16)
    else:
        precision = nullcontext()

    last = time.perf_counter()
    for step in range(config.max_steps):
        lr = optim.max_lr * min(1.0, (step + 1) / optim.warmup_steps)
        for group in optimizer.param_groups:
            group["lr"] = lr
        running = 0.0
        for _ in range(optim.grad_accum_steps):
            inputs, targets = windows.next_batch(optim.batch_size)
            with precision:
                logits, z_loss = net(inputs)
                cross_entropy = F.cross_entropy(
                    logits.view(-1, logits.size(-1)).float(), targets.view(-1)
                )
            loss = cross_entropy + optim.router_z_coef * z_loss
            (loss / optim.grad_accum_steps).backward()
            running += cross_entropy.item() / optim.grad_accum_steps
        torch.nn.utils.clip_grad_norm_(net.parameters(), optim.grad_clip)
        optimizer.step()
        optimizer.zero_grad()

        now = time.perf_counter()
        if rank == 0 and step % config.print_every == 0:
            print(f"{step}: loss={running:.4f} dt={1e3 * (now - last):.1f}ms", flush=True)
        last = now


if __name__ == "__main__":
    main(sys.argv[1:])
