"""An Accelerate-like helper and the Trainer that drives it."""

import contextlib
import time
from dataclasses import dataclass

import torch


@dataclass
class TrainingArguments:
    train_batch_size: int = 8
    gradient_accumulation_steps: int = 2
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    max_grad_norm: float = 1.0
    num_warmup_steps: int = 15
    max_train_steps: int = 5000
    mixed_precision: str = "no"
    logging_steps: int = 5
    eval_steps: int = 200
    eval_batch_size: int = 4
    eval_batches: int = 4
    seed: int = 1234


class Accelerator:
    """Scales the loss, clips, and opens the autocast region."""

    def __init__(self, gradient_accumulation_steps=1, mixed_precision="no"):
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.mixed_precision = mixed_precision

    def autocast(self):
        if self.mixed_precision == "bf16":
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def backward(self, loss):
        (loss / self.gradient_accumulation_steps).backward()

    def clip_grad_norm_(self, parameters, max_norm):
        return torch.nn.utils.clip_grad_norm_(parameters, max_norm)


class Trainer:
    def __init__(self, model, args, corpus):
        self.model = model
        self.args = args
        self.corpus = corpus
        self.accelerator = Accelerator(args.gradient_accumulation_steps, args.mixed_precision)
        self.optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=args.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=args.weight_decay,
            foreach=False,
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.warmup)
        self.generator = torch.Generator().manual_seed(args.seed)

    def warmup(self, step):
        return min(1.0, (step + 1) / self.args.num_warmup_steps)

    def compute_loss(self, inputs, targets):
        raise NotImplementedError

    def get_batch(self):
        return self.corpus.batch("train", self.args.train_batch_size, self.generator)

    def training_step(self):
        total = 0.0
        for _ in range(self.args.gradient_accumulation_steps):
            inputs, targets = self.get_batch()
            with self.accelerator.autocast():
                loss = self.compute_loss(inputs, targets)
            self.accelerator.backward(loss)
            total += loss.item() / self.args.gradient_accumulation_steps
        self.accelerator.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()
        return total

    def evaluate(self):
        self.model.eval()
        generator = torch.Generator().manual_seed(self.args.seed + 1)
        losses = []
        with torch.no_grad():
            for _ in range(self.args.eval_batches):
                batch = self.corpus.batch("valid", self.args.eval_batch_size, generator)
                losses.append(self.compute_loss(*batch).item())
        self.model.train()
        return sum(losses) / len(losses)

    def train(self):
        self.model.train()
        tic = time.time()
        for step in range(1, self.args.max_train_steps + 1):
            loss = self.training_step()
            if step % self.args.logging_steps == 0:
                toc = time.time()
                print(f"step {step} loss {loss:.5f} time {toc - tic:.3f}s", flush=True)
                tic = time.time()
            if step % self.args.eval_steps == 0:
                print(f"step {step} eval_loss {self.evaluate():.5f}", flush=True)
