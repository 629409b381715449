"""Noise of process pairs, sequential confirmation, and what a budget can resolve."""
