#!/usr/bin/env bash
python train.py configs/base.yaml optim.grad_accum_steps=2
