"""Report: a finished campaign with the source it measured."""

from infrarsi.errors import UsageError
from infrarsi.report.model import Report, build_report
from infrarsi.wire.messages import CampaignView
from infrarsi_server.operations.campaigns import measured_texts
from infrarsi_server.operations.project import Project


def report_of(project: Project, view: CampaignView) -> Report:
    """The report of a finished run.

    Raises:
        UsageError: it is no finished run.
    """
    if view.run is None:
        raise UsageError(
            f"Campaign {view.id} is a {view.kind} that is {view.state}; it has no report.",
            "Name a finished run with --campaign.",
        )
    return build_report(view.run, measured_texts(project, view))
