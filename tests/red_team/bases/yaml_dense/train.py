"""Data-parallel training of the small decoder, everything set in a YAML file."""

import argparse
import contextlib
import math
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from loader import BatchLoader
from model import Decoder
from settings import load_settings


def learning_rate(step, train, steps):
    if step < train.warmup:
        return train.lr * (step + 1) / train.warmup
    done = (step - train.warmup) / max(1, steps - train.warmup)
    return train.min_lr + 0.5 * (train.lr - train.min_lr) * (1 + math.cos(math.pi * done))


def forward_context(precision):
    if precision == "bf16":
        return torch.autocast("cpu", dtype=torch.bfloat16)
    return contextlib.nullcontext()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.yaml")
    cfg = load_settings(parser.parse_args().config)

    world = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    if world > 1:
        dist.init_process_group("gloo")

    torch.manual_seed(cfg.run.seed)
    model = Decoder(cfg.model)
    if world > 1:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=cfg.train.lr,
        betas=tuple(cfg.train.betas),
        weight_decay=cfg.train.weight_decay,
        foreach=False,
    )
    loader = BatchLoader(cfg.data, cfg.train, cfg.run.seed, rank, world)

    for step in range(cfg.run.steps):
        started = time.time()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, cfg.train, cfg.run.steps)

        step_loss = 0.0
        for inputs, targets in loader.step_batches():
            with forward_context(cfg.train.precision):
                logits = model(inputs)
            loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
            loss = loss / cfg.train.accumulation
            loss.backward()
            step_loss += loss.item()

        torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.train.clip)
        optimizer.step()
        optimizer.zero_grad()

        if world > 1:
            mean = torch.tensor(step_loss)
            dist.all_reduce(mean)
            step_loss = mean.item() / world
        if rank == 0 and step % cfg.run.log_every == 0:
            took = time.time() - started
            print(f"step {step:5d} | loss {step_loss:.4f} | {1000 * took:.1f} ms", flush=True)

    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
