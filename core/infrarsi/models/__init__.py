"""Models fitted on trials: step time, censored peak memory, and what breaks."""
