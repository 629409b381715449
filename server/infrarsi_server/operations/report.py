"""Report: a finished campaign with the source it measured."""

from infrarsi.report.model import Report, build_report
from infrarsi.wire.messages import CampaignView
from infrarsi_server.operations.campaigns import measured_texts, no_report
from infrarsi_server.operations.project import Project


def report_of(project: Project, view: CampaignView) -> Report:
    """The report of a finished run.

    Raises:
        UsageError: it is no finished run.
    """
    if view.run is None:
        raise no_report(view)
    return build_report(view.run, measured_texts(project, view))
