"""One file an operation. They return records and never print; faces call them."""
