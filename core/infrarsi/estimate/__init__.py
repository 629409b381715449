"""Step time and peak memory of a described job, without running it."""
