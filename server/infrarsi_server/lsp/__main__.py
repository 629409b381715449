"""`python -P -m infrarsi_server.lsp`: how the extension starts the server.

With `-P` a folder of the user's that holds a `pydantic.py` cannot shadow what the server imports.
"""

from infrarsi_server.lsp.server import main

main()
