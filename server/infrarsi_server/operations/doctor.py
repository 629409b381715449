"""Doctor's answer in its public shape."""

from infrarsi.frozen import Frozen
from infrarsi.report.findings import Finding, findings
from infrarsi.wire.messages import CampaignView
from infrarsi.wire.probe import Profile
from infrarsi.wire.results import Calibration


class DoctorReport(Frozen):
    """What was measured of the untouched baseline. `hints` are D-codes at the lines that cost."""

    campaign: str
    calibration: Calibration
    profile: Profile
    hints: tuple[Finding, ...]


def doctor_report(view: CampaignView) -> DoctorReport:
    """The answer of a finished doctor campaign; KeyError where it is none."""
    if view.doctor is None:
        raise KeyError(view.id)
    return DoctorReport(
        campaign=view.id,
        calibration=view.doctor.calibration,
        profile=view.doctor.profile,
        hints=findings(view.doctor.hints),
    )
