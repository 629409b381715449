"""Makes `core/infrarsi/data/estimate.json` from the packed public runs."""

import json
from pathlib import Path

from estimate_folds import MEMORY, TIME, Fitting, Kind, observed_runs
from estimate_rows import load_runs

FILE = Path(__file__).resolve().parents[1] / "core" / "infrarsi" / "data" / "estimate.json"


def fitted(kind: Kind) -> dict:
    """All runs' coefficients; the spread of errors left out by source and by model."""
    fitting = Fitting(kind, observed_runs(kind, load_runs()))
    by_source, _ = fitting.left_out(fitting.sources)
    by_model, _ = fitting.left_out(fitting.groups())
    return fitting.table() | {"spread": fitting.spread([by_source, by_model])}


def main() -> None:
    """Write the file."""
    document = {kind.name: fitted(kind) for kind in (TIME, MEMORY)}
    FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8")
    print(f"{FILE} written, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
