"""A person's editor as the server sees it: a real server process, documents, and what it shows."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient, client_capabilities
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features

SERVER = [sys.executable, "-P", "-m", "infrarsi_server.lsp"]
PATIENCE_S = 30.0

T = TypeVar("T")


@dataclass
class Editor:
    """One client session. `published` is every push in order; `progress` every progress value."""

    client: LanguageClient
    environ: dict[str, str] = field(default_factory=dict)
    capabilities: types.ServerCapabilities = field(default_factory=types.ServerCapabilities)
    published: list[types.PublishDiagnosticsParams] = field(default_factory=list)
    progress: list[types.ProgressParams] = field(default_factory=list)
    registrations: list[types.Registration] = field(default_factory=list)
    _versions: dict[Path, int] = field(default_factory=dict)
    _texts: dict[Path, str] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self, path: Path, text: str | None = None) -> None:
        """Open a document with a text, the file's own by default."""
        self._texts[path] = path.read_text(encoding="utf-8") if text is None else text
        self._versions[path] = 1
        item = types.TextDocumentItem(
            uri=path.as_uri(), language_id="python", version=1, text=self._texts[path]
        )
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))

    def change(self, path: Path, text: str) -> int:
        """Replace the text of an open document; the new version."""
        self._versions[path] += 1
        self._texts[path] = text
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                text_document=types.VersionedTextDocumentIdentifier(
                    uri=path.as_uri(), version=self._versions[path]
                ),
                content_changes=[types.TextDocumentContentChangeWholeDocument(text=text)],
            )
        )
        return self._versions[path]

    def replace(self, path: Path, old: str, new: str) -> int:
        """Change the first occurrence of a text that must be there."""
        assert old in self._texts[path]
        return self.change(path, self._texts[path].replace(old, new, 1))

    def close(self, path: Path) -> None:
        """Close a document."""
        self.client.text_document_did_close(
            types.DidCloseTextDocumentParams(text_document=identifier(path))
        )

    def text(self, path: Path) -> str:
        """The text of an open document."""
        return self._texts[path]

    def version(self, path: Path) -> int | None:
        """The version of an open document."""
        return self._versions.get(path)

    async def diagnostics(
        self, path: Path, wanted: Callable[[Sequence[types.Diagnostic]], bool]
    ) -> Sequence[types.Diagnostic]:
        """Wait until the newest push for the present version of a file is as wanted."""

        def found() -> Sequence[types.Diagnostic] | None:
            mine = [p for p in self.published if p.uri == path.as_uri()]
            if not mine or mine[-1].version != self._versions.get(path):
                return None
            return mine[-1].diagnostics if wanted(mine[-1].diagnostics) else None

        return await self.until(found)

    async def until(self, found: Callable[[], T | None]) -> T:
        """Wait until something the server sends makes `found` give a value."""
        async with asyncio.timeout(PATIENCE_S):
            while (value := found()) is None:
                self._news.clear()
                await self._news.wait()
        return value

    async def hover(self, path: Path, needle: str, skip: int = 0) -> types.Hover | None:
        """Hover on the first character of a text in an open document, `skip` units further."""
        position = position_of(self._texts[path], needle)
        position = types.Position(line=position.line, character=position.character + skip)
        return await self.client.text_document_hover_async(
            types.HoverParams(text_document=identifier(path), position=position)
        )

    async def fixes(
        self, path: Path, diagnostics: Sequence[types.Diagnostic]
    ) -> list[types.CodeAction]:
        """The quick fixes offered for diagnostics, not yet resolved."""
        actions = await self.client.text_document_code_action_async(
            types.CodeActionParams(
                text_document=identifier(path),
                range=diagnostics[0].range,
                context=types.CodeActionContext(diagnostics=list(diagnostics)),
            )
        )
        return [action for action in actions or [] if isinstance(action, types.CodeAction)]

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send one of our own requests."""
        return await self.client.protocol.send_request_async(method, params)

    def accept_token(self, token: str) -> None:
        """Expect progress on a token the client made itself."""
        self.client.progress_reports.setdefault(token, [])

    def apply(self, edit: types.WorkspaceEdit) -> None:
        """Apply a workspace edit the way an editor does: to documents, refused if stale."""
        assert edit.document_changes is not None
        for change in edit.document_changes:
            assert isinstance(change, types.TextDocumentEdit)
            path = Path(unquote(change.text_document.uri.removeprefix("file://")))
            if path not in self._texts:
                self.open(path)
            else:
                assert change.text_document.version == self._versions[path]
            self.change(path, with_edits(self._texts[path], change.edits))

    def notice(self) -> None:
        """Something arrived."""
        self._news.set()


@asynccontextmanager
async def start_editor(
    root: Path,
    *,
    capabilities: types.ClientCapabilities | None = None,
    options: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
) -> AsyncIterator[Editor]:
    """Start a server and initialise it as VS Code would, or with other capabilities."""
    client = LanguageClient(converter_factory=default_converter)
    editor = Editor(client, environ or {})
    register_lsp_features(client, {**DEFAULT_CLIENT_FEATURES, **_features(editor)})
    await client.start_io(*SERVER, cwd=root, env={**os.environ, **(environ or {})})
    try:
        initialized = await client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities or client_capabilities("visual-studio-code"),
                root_uri=root.as_uri(),
                initialization_options=options,
            )
        )
        editor.capabilities = initialized.capabilities
        yield editor
        await client.shutdown_session()
    finally:
        await client.stop()


@asynccontextmanager
async def in_thread(manager: AbstractContextManager[Any]) -> AsyncIterator[None]:
    """Enter and leave a context on other threads: some run an event loop of their own."""
    await asyncio.to_thread(manager.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(manager.__exit__, None, None, None)


def identifier(path: Path) -> types.TextDocumentIdentifier:
    """The protocol's name of a document."""
    return types.TextDocumentIdentifier(uri=path.as_uri())


def position_of(text: str, needle: str) -> types.Position:
    """Where a text begins, in UTF-16 units as an editor counts."""
    before = text[: text.index(needle)]
    line = before.rsplit("\n", 1)[-1]
    return types.Position(line=before.count("\n"), character=len(line.encode("utf-16-le")) // 2)


def with_edits(text: str, edits: Sequence[Any]) -> str:
    """Apply text edits the way an editor does, from the last to the first."""
    ordered = sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character))
    for edit in reversed(ordered):
        start, end = (_offset(text, at) for at in (edit.range.start, edit.range.end))
        text = text[:start] + edit.new_text + text[end:]
    return text


def _offset(text: str, position: types.Position) -> int:
    lines = text.split("\n")
    units = lines[position.line].encode("utf-16-le")[: 2 * position.character]
    return sum(len(line) + 1 for line in lines[: position.line]) + len(units.decode("utf-16-le"))


def _features(editor: Editor) -> dict[str, Any]:
    def published(client: LanguageClient, params: types.PublishDiagnosticsParams) -> None:
        editor.published.append(params)
        editor.notice()

    def progressed(client: LanguageClient, params: types.ProgressParams) -> None:
        editor.progress.append(params)
        editor.notice()

    def shown(client: LanguageClient, params: types.ShowMessageParams) -> None:
        client.messages.append(params)
        editor.notice()

    def registered(client: LanguageClient, params: types.RegistrationParams) -> None:
        editor.registrations.extend(params.registrations)
        editor.notice()

    return {
        types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: published,
        types.PROGRESS: progressed,
        types.WINDOW_SHOW_MESSAGE: shown,
        types.CLIENT_REGISTER_CAPABILITY: registered,
    }
