"""Quick fixes: restore or compensate, one at a time, resolved only when chosen.

Never `source.fixAll`: nothing is changed by saving. An edit is offered under the versions the
documents have now, and refused with a message where the text moved on since it was computed.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from infrarsi.errors import EditConflict
from infrarsi_server.lsp.features.diagnostics import distinct_violations
from infrarsi_server.lsp.features.documents import look_up_root
from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.lsp.to_lsp import SOURCE, FileNow, diagnostic, path_of, workspace_edit
from infrarsi_server.session import Analysis, Document
from infrarsi_server.workspace.files import FolderSources

SETTLE_S = 5.0
_MOVED_ON = "The code has changed since this fix was computed. Ask for the fix again."


def register(server: InfraRSIServer) -> None:
    """Offer and resolve quick fixes."""

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.QuickFix], resolve_provider=True
        ),
    )
    async def code_action(
        ls: InfraRSIServer, params: types.CodeActionParams
    ) -> list[types.CodeAction]:
        if not _wants_quick_fixes(params.context.only):
            return []
        path = path_of(params.text_document.uri)
        analysis = None if path is None else await current_analysis(ls, path)
        if path is None or analysis is None:
            return []
        actions = _offer(ls, analysis, path, params.range)
        return actions if _resolves_later(ls) else [await _resolve(ls, a) for a in actions]

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(ls: InfraRSIServer, action: types.CodeAction) -> types.CodeAction:
        return await _resolve(ls, action)


async def current_analysis(ls: InfraRSIServer, path: Path) -> Analysis | None:
    """The analysis of a file's root as it is now, waiting for the one under way; else None."""
    root = await look_up_root(ls, path)
    if root is None:
        return None
    await ls.analyses.settled(root, SETTLE_S)
    analysis = ls.session.analysis(root)
    if analysis is None or not ls.session.is_current(analysis.snapshot):
        return None
    return analysis


def _wants_quick_fixes(only: object) -> bool:
    if not only:
        return True
    kinds = only if isinstance(only, (list, tuple)) else [only]
    return any(str(getattr(k, "value", k)) in {"", "quickfix"} for k in kinds)


def _resolves_later(ls: InfraRSIServer) -> bool:
    document = ls.client_capabilities.text_document
    action = document.code_action if document else None
    support = action.resolve_support if action else None
    return support is not None and "edit" in support.properties


def _offer(
    ls: InfraRSIServer, analysis: Analysis, path: Path, asked: types.Range
) -> list[types.CodeAction]:
    root, codec = analysis.snapshot.root, ls.workspace.position_codec
    file = path.relative_to(root).as_posix()
    actions: list[types.CodeAction] = []
    for index, violation in enumerate(distinct_violations(analysis)):
        if violation.place is None or violation.place.file != file:
            continue
        found = diagnostic(violation, root, analysis.texts, codec, ls.guard)
        if _overlap(found.range, asked):
            actions += [_action(analysis, index, fix, found) for fix in range(len(violation.fixes))]
    return actions


def _action(analysis: Analysis, index: int, fix: int, found: types.Diagnostic) -> types.CodeAction:
    violation = distinct_violations(analysis)[index]
    snapshot = analysis.snapshot
    return types.CodeAction(
        title=violation.fixes[fix].title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[found],
        data={
            "source": SOURCE,
            "root": str(snapshot.root),
            "generation": snapshot.generation,
            "violation": index,
            "fix": fix,
        },
    )


def _overlap(a: types.Range, b: types.Range) -> bool:
    def key(position: types.Position) -> tuple[int, int]:
        return (position.line, position.character)

    return key(a.start) <= key(b.end) and key(b.start) <= key(a.end)


async def _resolve(ls: InfraRSIServer, action: types.CodeAction) -> types.CodeAction:
    data = action.data
    analysis = _analysis_of(ls, data) if isinstance(data, Mapping) else None
    if analysis is None or not isinstance(data, Mapping):
        raise _refuse(ls, _MOVED_ON)
    fix = distinct_violations(analysis)[int(data["violation"])].fixes[int(data["fix"])]
    root = analysis.snapshot.root
    now = await _texts_now(ls, root, sorted({edit.file for edit in fix.edits}))
    if any(now[file][0] != analysis.texts.get(file) for file in now):
        raise _refuse(ls, _MOVED_ON)
    try:
        action.edit = workspace_edit(fix.edits, root, now, ls.workspace.position_codec)
    except EditConflict as conflict:
        raise _refuse(ls, str(conflict)) from conflict
    return action


def _analysis_of(ls: InfraRSIServer, data: Mapping[str, object]) -> Analysis | None:
    analysis = ls.session.analysis(Path(str(data.get("root", ""))))
    if analysis is None or not ls.session.is_current(analysis.snapshot):
        return None
    return analysis if analysis.snapshot.generation == data.get("generation") else None


async def _texts_now(ls: InfraRSIServer, root: Path, files: list[str]) -> dict[str, FileNow]:
    closed = [file for file in files if ls.session.document(root / file) is None]
    on_disk = await asyncio.to_thread(_read_files, root, closed)
    return {file: _file_now(ls.session.document(root / file), on_disk.get(file)) for file in files}


def _read_files(root: Path, files: list[str]) -> dict[str, str | None]:
    sources = FolderSources(root)
    return {file: sources.text(file) for file in files}


def _file_now(document: Document | None, on_disk: str | None) -> FileNow:
    return (on_disk, None) if document is None else (document.text, document.version)


def _refuse(ls: InfraRSIServer, message: str) -> JsonRpcException:
    ls.tell(message)
    return JsonRpcException(message=message, code=types.LSPErrorCodes.ContentModified.value)
