"""Violations as diagnostics, pushed for the very version they were computed from or not at all."""

import asyncio
from collections import defaultdict
from pathlib import Path

from lsprotocol import types

from infrarsi.contract.violation import Violation
from infrarsi_server.lsp.analysis import analyse_snapshot, tidy
from infrarsi_server.lsp.features.watching import follow_analysis
from infrarsi_server.lsp.language_server import InfraRSIServer
from infrarsi_server.lsp.to_lsp import SOURCE, diagnostic, uri_of
from infrarsi_server.session import Analysis
from infrarsi_server.workspace.root import CONFIG_NAME


async def analyse(ls: InfraRSIServer, root: Path) -> None:
    """Read one root in a worker thread; keep and publish it if nothing moved meanwhile."""
    analysis = await asyncio.to_thread(analyse_snapshot, ls.session.snapshot(root))
    if ls.session.keep(analysis):
        _publish(ls, analysis)
        follow_analysis(ls, analysis)
    await asyncio.to_thread(tidy)


def _publish(ls: InfraRSIServer, analysis: Analysis) -> None:
    root = analysis.snapshot.root
    by_file = _diagnostics(ls, analysis)
    open_files = {
        path.relative_to(root).as_posix(): document
        for path, document in analysis.snapshot.documents.items()
    }
    before = ls.published.get(root, frozenset())
    ls.published[root] = frozenset(by_file)
    for file in sorted({*by_file, *open_files, *before}):
        document = open_files.get(file)
        ls.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=uri_of(root / file) if document is None else document.uri,
                version=None if document is None else document.version,
                diagnostics=by_file.get(file, []),
            )
        )


def _diagnostics(ls: InfraRSIServer, analysis: Analysis) -> dict[str, list[types.Diagnostic]]:
    root, codec = analysis.snapshot.root, ls.workspace.position_codec
    by_file: dict[str, list[types.Diagnostic]] = defaultdict(list)
    if analysis.problem is not None:
        by_file[CONFIG_NAME].append(_problem(analysis.problem))
    for violation in distinct_violations(analysis):
        file = CONFIG_NAME if violation.place is None else violation.place.file
        found = diagnostic(violation, root, analysis.texts, codec, ls.guard)
        by_file[file].append(found)
    return dict(by_file)


def distinct_violations(analysis: Analysis) -> tuple[Violation, ...]:
    """The violations of all jobs, each once: two jobs often share the line that breaks both."""
    return tuple(dict.fromkeys(v for job in analysis.jobs for v in job.violations))


def _problem(message: str) -> types.Diagnostic:
    top = types.Position(line=0, character=0)
    return types.Diagnostic(
        range=types.Range(start=top, end=types.Position(line=1, character=0)),
        message=message,
        severity=types.DiagnosticSeverity.Error,
        source=SOURCE,
    )
