"""From a parsed launch to a command, and from a command to processes."""
