"""Everything that crosses a process: messages, the probe's configuration and evidence, versions."""
