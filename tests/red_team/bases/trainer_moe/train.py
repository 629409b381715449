"""Trains the mixture of experts on the generated recipes."""

import torch
import torch.nn.functional as F

from model import MoEConfig, MoETransformer
from text import Corpus
from trainer import Trainer, TrainingArguments


class LanguageModelTrainer(Trainer):
    def compute_loss(self, inputs, targets):
        logits, aux_loss = self.model(inputs)
        ce = F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))
        return ce + self.model.cfg.aux_loss_coef * aux_loss


def main():
    args = TrainingArguments(learning_rate=3e-3)
    cfg = MoEConfig()
    torch.manual_seed(args.seed)
    model = MoETransformer(cfg)
    n_params = sum(p.numel() for p in model.parameters())
    print(f"{n_params / 1e3:.0f}k parameters, {cfg.n_experts} experts, top {cfg.top_k}")
    trainer = LanguageModelTrainer(model, args, Corpus(cfg.seq_len))
    trainer.train()


if __name__ == "__main__":
    main()
