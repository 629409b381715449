#!/usr/bin/env bash
torchrun --standalone --nproc-per-node 2 train.py --batch-size 4 --grad-accum-steps 2 --seq-len 64 --grad-clip 1.0
