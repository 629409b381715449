#!/usr/bin/env bash
python train.py --batch-size 2 --accum 6 --seq-len 64 --lr 3e-3
