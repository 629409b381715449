"""Jobs whose loop, or whose step, is a library's: what its settings say of a step."""
