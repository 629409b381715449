"""The editor's settings: how loud the guard is, and whether the workspace is trusted."""

from collections.abc import Mapping

from lsprotocol import types

from infrarsi_server.lsp.language_server import InfraRSIServer


def register(server: InfraRSIServer) -> None:
    """Take settings at the start and whenever they change."""

    @server.feature(types.INITIALIZE)
    def initialize(ls: InfraRSIServer, params: types.InitializeParams) -> None:
        options = params.initialization_options
        if isinstance(options, Mapping):
            take_settings(ls, options)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change(ls: InfraRSIServer, params: types.DidChangeConfigurationParams) -> None:
        settings = params.settings
        mine = settings.get("infrarsi") if isinstance(settings, Mapping) else None
        if isinstance(mine, Mapping) and take_settings(ls, mine):
            for root in ls.session.roots():
                ls.refresh(root, at_once=True)


def take_settings(ls: InfraRSIServer, settings: Mapping[str, object]) -> bool:
    """Take what is known of the settings, ignore the rest; whether anything changed."""
    before = (ls.guard, ls.trusted)
    guard, trusted = settings.get("guard"), settings.get("trusted")
    if guard in ("warn", "strict"):
        ls.guard = "strict" if guard == "strict" else "warn"
    if isinstance(trusted, bool):
        ls.trusted = trusted
    return before != (ls.guard, ls.trusted)
