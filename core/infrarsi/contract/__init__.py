"""What is declared and must not change, and the lock that freezes it."""
