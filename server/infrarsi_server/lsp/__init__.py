"""The editor's face: adapters between the operations and the language server protocol."""
