"""S401: locked files stay byte for byte.

Data, evaluation and whatever else the scope locks are part of what is measured. Their SHA-256
was frozen with the contract.

Mend it by restoring the file from the baseline commit, or lock again to accept it.
"""

from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.rules.change import Change

CODE = "S401"


def find(change: Change) -> Iterator[Violation]:
    """One finding for each locked file that is another or gone."""
    for path, present in sorted((change.file_hashes or {}).items()):
        agreed = change.lock.locked_files.get(path)
        if agreed is None or agreed == present:
            continue
        what = "was edited" if present else "is gone"
        yield violation(
            CODE,
            f"{path} is locked by the contract and {what}.",
            place=Place(file=path, line=1, end_line=1, end_column=1),
        )
