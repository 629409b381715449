"""`infrarsi estimate`, `bank`, `lsp` and `mcp`."""

from pathlib import Path
from typing import Annotated

import typer

from infrarsi.errors import UsageError
from infrarsi_server.cli import options
from infrarsi_server.cli.answers import BankList
from infrarsi_server.cli.output import put, say, write_json
from infrarsi_server.operations.estimate import estimate_lines

bank_app = typer.Typer(help="What trials taught, kept for later jobs.", add_completion=False)


def add_to(app: typer.Typer) -> None:
    """Add the commands that stand alone."""
    app.command("estimate")(estimate)
    app.command("lsp")(lsp)
    app.command("mcp")(mcp)


def estimate(
    job: Annotated[Path, typer.Option("--job", help="A file with one JSON object a line.")],
    as_json: options.Json = False,
) -> int:
    """Estimate step time and memory of described jobs, one JSON object a line; runs nothing."""
    try:
        lines = job.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{job} cannot be read: {error}.", "Name a file of JSON lines.") from error
    put("".join(f"{answer.model_dump_json()}\n" for answer in estimate_lines(lines)))
    return 0


def lsp() -> int:
    """Serve the editor over standard input and output."""
    from infrarsi_server.lsp.server import main

    main()
    return 0


def mcp(as_json: options.Json = False) -> int:
    """Serve other agents; not built yet."""
    raise UsageError("The MCP server is not built yet.", "Use the commands with --json.")


@bank_app.command("list")
def bank_list(as_json: options.Json = False) -> int:
    """List what is recorded."""
    if as_json:
        write_json(BankList())
    else:
        say("Nothing is recorded: the experience bank is not built yet.")
    return 0


@bank_app.command("show")
@bank_app.command("export")
@bank_app.command("import")
def bank_other(
    name: Annotated[str | None, typer.Argument()] = None, as_json: options.Json = False
) -> int:
    """Not built yet."""
    raise UsageError("The experience bank is not built yet.", "Use `infrarsi report` meanwhile.")
