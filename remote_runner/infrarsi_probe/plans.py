"""What a mode does beyond counting: each plan gets its turn where a step opens and closes."""


class Plan:
    """Does nothing; a plan overrides what it needs.

    `opens` runs before the step's first work, `closes` after its last optimizer call and before
    anything of the next step.
    """

    def opens(self, index):
        """Step `index` is about to start."""

    def forward_begins(self, module):
        """An outermost forward with gradients is about to start."""

    def forward_ends(self, module):
        """That forward has returned; told in profile mode only."""

    def optimizer_begins(self, optimizer):
        """An optimizer is about to update its parameters."""

    def closes(self, index):
        """Step `index` has ended."""

    def obeys(self, command):
        """The runner sent a command."""

    def finishes(self):
        """No more events will come."""

    def evidence(self):
        """Fields of RankEvidence."""
        return {}


def plans_for(session):
    """The plans of a session's mode, in the order of their turns."""
    from infrarsi_probe.audit import AuditPlan
    from infrarsi_probe.flops import FlopPlan
    from infrarsi_probe.profile import ProfilePlan
    from infrarsi_probe.quiet import QuietPlan
    from infrarsi_probe.redo import RedoPlan
    from infrarsi_probe.reference import ReferencePlan

    mode = session.config.mode
    if mode == "preflight":
        return [FlopPlan(session)]
    if mode == "profile":
        return [ProfilePlan(session)]
    if mode == "redo":
        reference = [ReferencePlan(session)] if session.config.autocast else []
        return [AuditPlan(session), RedoPlan(session), QuietPlan(session), *reference]
    return [AuditPlan(session), QuietPlan(session)]
