"""`python -m infrarsi_server.cli.schemas docs/schemas` writes a JSON Schema for every answer."""

import json
import sys
from pathlib import Path
from typing import Any

from infrarsi_server.cli.answers import ANSWERS

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    """The schema of one answer; KeyError where there is no such answer."""
    made = ANSWERS[name].model_json_schema(mode="serialization")
    return {"$schema": _DRAFT, **made, "title": f"infrarsi {name} --json"}


def schema_texts() -> dict[str, str]:
    """Every schema file's text by its name."""
    return {f"{name}.json": json.dumps(schema(name), indent=2) + "\n" for name in ANSWERS}


def main(arguments: list[str]) -> int:
    """Write them into the folder named; 2 where it is not named."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m infrarsi_server.cli.schemas DIR\n")
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_texts().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
