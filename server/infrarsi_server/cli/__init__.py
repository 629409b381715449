"""The terminal's face: adapters only."""
