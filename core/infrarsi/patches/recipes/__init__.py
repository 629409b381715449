"""One rewrite a file; the class docstring is its help page."""
