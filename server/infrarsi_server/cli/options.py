"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Write JSON alone on standard output.")]
Folder = Annotated[
    Path | None,
    typer.Argument(metavar="[DIR]", help="The workspace; by default the one you are in."),
]
Job = Annotated[str | None, typer.Option("--job", help="The job, where there are several.")]
Launch = Annotated[
    str | None, typer.Option("--launch", help='The launch line, such as "python train.py".')
]
Before = Annotated[Path | None, typer.Option("--before", help="The folder before the change.")]
After = Annotated[Path | None, typer.Option("--after", help="The folder after the change.")]
Campaign = Annotated[
    str | None, typer.Option("--campaign", help="A campaign's id; by default the newest run.")
]
