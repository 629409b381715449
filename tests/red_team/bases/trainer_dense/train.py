"""Trains a small decoder on a generated text."""

import torch

from data import TextWindows, build_text
from model import CausalLM, ModelConfig
from trainer import Trainer, TrainingArguments


def main():
    args = TrainingArguments(
        per_device_train_batch_size=4,
        gradient_accumulation_steps=4,
        learning_rate=2e-3,
        max_steps=4000,
    )
    torch.manual_seed(args.seed)
    config = ModelConfig()
    dataset = TextWindows(build_text(), block_size=config.max_position_embeddings)
    model = CausalLM(config)
    print(f"parameters: {sum(p.numel() for p in model.parameters())}")
    trainer = Trainer(model=model, args=args, train_dataset=dataset)
    trainer.train()


if __name__ == "__main__":
    main()
