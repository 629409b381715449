"""A small Trainer: arguments in a dataclass, one optimizer step per training step."""

import math
import time
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, RandomSampler

from data import default_data_collator


@dataclass
class TrainingArguments:
    per_device_train_batch_size: int = 4
    gradient_accumulation_steps: int = 4
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    adam_beta1: float = 0.9
    adam_beta2: float = 0.98
    max_grad_norm: float = 1.0
    max_steps: int = 4000
    warmup_steps: int = 10
    logging_steps: int = 10
    dataloader_num_workers: int = 0
    bf16: bool = False
    seed: int = 42


class Trainer:
    def __init__(self, model, args, train_dataset, data_collator=default_data_collator):
        self.model = model
        self.args = args
        self.train_dataset = train_dataset
        self.data_collator = data_collator
        self.optimizer = self.create_optimizer()
        self.lr_scheduler = self.create_scheduler()
        self.global_step = 0

    def create_optimizer(self):
        decay = [p for p in self.model.parameters() if p.dim() >= 2]
        no_decay = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [
            {"params": decay, "weight_decay": self.args.weight_decay},
            {"params": no_decay, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            groups,
            lr=self.args.learning_rate,
            betas=(self.args.adam_beta1, self.args.adam_beta2),
            foreach=False,
        )

    def create_scheduler(self):
        def lr_lambda(step):
            if step < self.args.warmup_steps:
                return (step + 1) / self.args.warmup_steps
            done = (step - self.args.warmup_steps) / (self.args.max_steps - self.args.warmup_steps)
            return 0.1 + 0.45 * (1.0 + math.cos(math.pi * done))

        return torch.optim.lr_scheduler.LambdaLR(self.optimizer, lr_lambda)

    def get_train_dataloader(self):
        generator = torch.Generator().manual_seed(self.args.seed)
        return DataLoader(
            self.train_dataset,
            batch_size=self.args.per_device_train_batch_size,
            sampler=RandomSampler(self.train_dataset, generator=generator),
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            drop_last=True,
        )

    def autocast(self):
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.args.bf16)

    def compute_loss(self, model, inputs):
        with self.autocast():
            outputs = model(**inputs)
        return outputs.loss

    def training_step(self, model, inputs):
        model.train()
        loss = self.compute_loss(model, inputs)
        loss = loss / self.args.gradient_accumulation_steps
        loss.backward()
        return loss.detach().item()

    def log(self, loss, seconds):
        lr = self.lr_scheduler.get_last_lr()[0]
        print(
            f"{{'step': {self.global_step}, 'loss': {loss:.4f}, "
            f"'learning_rate': {lr:.2e}, 'ms_per_step': {1000 * seconds:.1f}}}",
            flush=True,
        )

    def train(self):
        batches = iter(self.get_train_dataloader())
        while self.global_step < self.args.max_steps:
            start = time.time()
            step_loss = 0.0
            for _ in range(self.args.gradient_accumulation_steps):
                inputs = next(batches)
                step_loss += self.training_step(self.model, inputs)
            torch.nn.utils.clip_grad_norm_(
                self.model.parameters(), self.args.max_grad_norm, foreach=False
            )
            self.optimizer.step()
            self.lr_scheduler.step()
            self.optimizer.zero_grad(set_to_none=False)
            self.global_step += 1
            if self.global_step % self.args.logging_steps == 0:
                self.log(step_loss, time.time() - start)
