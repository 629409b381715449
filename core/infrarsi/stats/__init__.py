"""Noise of process pairs, sequential confirmation, and what a budget can resolve."""

from infrarsi.stats.confirmation import Decision, decide
from infrarsi.stats.noise import NoiseModel, fit_noise
from infrarsi.stats.power import resolvable

__all__ = ["Decision", "NoiseModel", "decide", "fit_noise", "resolvable"]
