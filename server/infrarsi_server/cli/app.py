"""The commands, put together. Each module adds its own."""

import typer

from infrarsi_server.cli import (
    campaign_commands,
    other_commands,
    outcome_commands,
    runner_commands,
    setup_commands,
)

app = typer.Typer(
    name="infrarsi",
    help="Verified optimisations for training jobs, held to a contract.",
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for module in (
    setup_commands,
    campaign_commands,
    outcome_commands,
    other_commands,
):
    module.add_to(app)
app.add_typer(runner_commands.app, name="runner")
app.add_typer(other_commands.bank_app, name="bank")
