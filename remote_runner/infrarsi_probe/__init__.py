"""Inside the training process: standard library and the user's torch only (Python 3.9+)."""
