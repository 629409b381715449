"""The daemon that executes runs: it imports no torch, and whatever it starts may die."""
