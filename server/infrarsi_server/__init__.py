"""The user's side: one set of operations behind the language server and the command line."""
