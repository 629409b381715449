"""The defaults of transformers' `TrainingArguments`, and of trl's `SFTConfig` where they differ."""

from infrarsi.frozen import Scalar

TRAINING_ARGUMENTS: dict[str, Scalar | None] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "auto_find_batch_size": False,
    "learning_rate": 5e-5,
    "weight_decay": 0.0,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "max_grad_norm": 1.0,
    "num_train_epochs": 3.0,
    "max_steps": -1,
    "optim": "adamw_torch",
    "label_smoothing_factor": 0.0,
    "seed": 42,
    "bf16": False,
    "fp16": False,
    "split_batches": False,
}
"""From the fields of the dataclass `transformers.TrainingArguments`."""

_DIFFERS = {"learning_rate", "bf16"}
SFT_CONFIG = {k: v for k, v in TRAINING_ARGUMENTS.items() if k not in _DIFFERS}
"""`trl.SFTConfig`; what it sets otherwise in some of its releases is left out."""

OPTIMIZERS = {
    "adamw": "AdamW",
    "adam": "Adam",
    "adafactor": "Adafactor",
    "sgd": "SGD",
    "adagrad": "Adagrad",
    "rmsprop": "RMSprop",
    "lion": "Lion",
    "lomo": "LOMO",
    "galore": "GaLore",
    "muon": "Muon",
}
"""Optimizers by how the names in `optim` begin (`adamw_torch_fused`); the longest fits first."""


def optimizer_name(optim: str) -> str | None:
    """The class behind a name of `optim`."""
    beginnings = sorted(OPTIMIZERS, key=len, reverse=True)
    return next((OPTIMIZERS[start] for start in beginnings if optim.startswith(start)), None)
