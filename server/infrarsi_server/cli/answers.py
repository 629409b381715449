"""Every JSON document the commands write, by command: what `docs/schemas/` is made from."""

from pydantic import BaseModel

from infrarsi.frozen import Frozen
from infrarsi.report.model import Report
from infrarsi.wire.messages import CampaignState
from infrarsi_server.operations.apply import ApplyResult
from infrarsi_server.operations.check import CheckResult
from infrarsi_server.operations.doctor import DoctorReport
from infrarsi_server.operations.estimate import EstimateLine
from infrarsi_server.operations.init import InitResult
from infrarsi_server.operations.lock import LockResult
from infrarsi_server.operations.runner import RunnerStatus
from infrarsi_server.operations.verify import VerifyReport


class Told(Frozen):
    """What was wrong, and what to do about it."""

    what: str
    do: str


class ErrorAnswer(Frozen):
    """Written instead of the answer where a command fails."""

    error: Told


class StopAnswer(Frozen):
    """`run --stop ID`: the campaign as it stood when it was asked to stop."""

    campaign: str
    state: CampaignState


class BankList(Frozen):
    """`bank list`: nothing is recorded yet."""

    receipts: tuple[str, ...] = ()


ANSWERS: dict[str, type[BaseModel]] = {
    "init": InitResult,
    "lock": LockResult,
    "check": CheckResult,
    "verify": VerifyReport,
    "doctor": DoctorReport,
    "run": Report,
    "run-stop": StopAnswer,
    "report": Report,
    "apply": ApplyResult,
    "estimate": EstimateLine,
    "runner-status": RunnerStatus,
    "bank-list": BankList,
    "error": ErrorAnswer,
}
"""One a schema file; `estimate` is of each line. `runner stop` answers as `runner status`."""
