"""Every violation code, once. Static rules and judge take theirs from here; codes never change.

Titles name the breach, summaries say what the contract asks. A few codes (L201, S405, E503) have
no check of their own yet: what they forbid shows as another code, such as L208 in the audit.
"""

from typing import Literal

from infrarsi.contract.violation import FAMILIES, Family, Fix, Severity, Violation
from infrarsi.frozen import Frozen
from infrarsi.place import Place

DecidedBy = Literal["static", "judge", "both"]


class Code(Frozen):
    """One code. `decided_by` says which guard can reject on it: reading, evidence or either."""

    code: str
    title: str
    decided_by: DecidedBy
    summary: str

    @property
    def family(self) -> Family:
        """The family the code's letter names."""
        return FAMILIES[self.code[0]]


def violation(
    code: str,
    message: str,
    severity: Severity = "error",
    place: Place | None = None,
    contract_place: Place | None = None,
    fixes: tuple[Fix, ...] = (),
) -> Violation:
    """A violation of a known code; KeyError where the catalogue has no such code."""
    return Violation(
        code=CATALOGUE[code].code,
        severity=severity,
        message=message,
        place=place,
        contract_place=contract_place,
        fixes=fixes,
    )


def _entries(
    *entries: tuple[str, DecidedBy, str, str],
) -> dict[str, Code]:
    return {
        code: Code(code=code, decided_by=decided_by, title=title, summary=summary)
        for code, decided_by, title, summary in entries
    }


_WORKLOAD = _entries(
    (
        "W101",
        "both",
        "Effective batch changed",
        "Micro-batch times accumulation times processes stays the same in every step.",
    ),
    (
        "W102",
        "both",
        "Sequence length changed",
        "Rows keep the number of tokens the contract holds, from the loader into the model.",
    ),
    (
        "W103",
        "judge",
        "Update cadence changed",
        "Every step updates the weights once; no update is skipped, added or postponed.",
    ),
    (
        "W104",
        "judge",
        "Model changed",
        "The parameters keep their number, shapes and meaning.",
    ),
    (
        "W106",
        "judge",
        "Rows repeated",
        "Each step sees the fresh rows the baseline would see, not cached or re-drawn ones.",
    ),
    (
        "W108",
        "judge",
        "Other rows",
        "The rows, their order between steps, their masks and targets are the baseline's.",
    ),
)

_LOSS = _entries(
    (
        "L201",
        "judge",
        "Objective changed",
        "The loss is the same function of logits and targets.",
    ),
    (
        "L202",
        "judge",
        "Loss in low precision",
        "Logits enter the loss, and the loss enters backward, in 32 bits.",
    ),
    (
        "L203",
        "both",
        "Weights or state in low precision",
        "Parameters and optimizer state keep 32 bits; 16-bit compute goes through autocast.",
    ),
    (
        "L204",
        "judge",
        "Loss on fewer positions",
        "As many positions count in the loss as in the baseline.",
    ),
    (
        "L205",
        "judge",
        "Clipping changed",
        "Gradients are clipped to the same norm, once a step, before the update.",
    ),
    (
        "L207",
        "judge",
        "Parameters frozen",
        "Every parameter the baseline trains receives a gradient and changes.",
    ),
    (
        "L208",
        "judge",
        "Gradient differs",
        "The gradient of a step, taken again by the baseline, agrees within the policy.",
    ),
    (
        "L209",
        "judge",
        "Update differs or comes late",
        "The change of the weights follows from this step's gradient, as in the baseline.",
    ),
    (
        "L210",
        "judge",
        "Optimizer changed",
        "Optimizer, its hyper-parameters and its groups stay.",
    ),
    (
        "L211",
        "judge",
        "Learning rate differs",
        "Each update uses the learning rate the baseline's schedule gives it.",
    ),
    (
        "L216",
        "judge",
        "Arithmetic in lower precision",
        "Products are computed in the declared precision, or in bf16 autocast where allowed.",
    ),
    (
        "L219",
        "judge",
        "Loss or weights not finite",
        "Losses, gradients and weights stay finite where the baseline's do.",
    ),
    (
        "L224",
        "judge",
        "Loss curve differs",
        "Over the window the losses follow the baseline's within the margin fixed at lock.",
    ),
)

_TIMING = _entries(
    (
        "T301",
        "judge",
        "Work outside its turn",
        "While the other side is timed, the process tree uses no processor time.",
    ),
    (
        "T303",
        "judge",
        "Work left running",
        "A step's work ends with the step; none continues in threads or other processes.",
    ),
    (
        "T305",
        "judge",
        "Clock tampered with",
        "Clocks and synchronisation functions are the ones Python and torch came with.",
    ),
    (
        "T312",
        "judge",
        "Slower than claimed over a whole run",
        "A whole ungated run is as fast as the timed steps said, start-up aside.",
    ),
    (
        "T315",
        "judge",
        "Faster than its arithmetic allows",
        "No step takes less time than its own multiply-adds need at the device's roof.",
    ),
)

_SCOPE = _entries(
    (
        "S401",
        "both",
        "Locked file edited",
        "Files the scope locks stay byte for byte as they were when the contract was locked.",
    ),
    (
        "S405",
        "judge",
        "Framework function replaced",
        "Functions of torch and of the standard library are the ones they came with.",
    ),
    (
        "S406",
        "judge",
        "Probe disturbed",
        "The probe's hooks stay in place and its evidence arrives whole.",
    ),
    (
        "S413",
        "judge",
        "Dependency shadowed",
        "No file of the workspace takes the place of an installed or standard module.",
    ),
)

_ENVIRONMENT = _entries(
    (
        "E501",
        "both",
        "Other devices or processes",
        "As many processes on as many devices of the same kind as the contract holds.",
    ),
    (
        "E502",
        "judge",
        "Other software",
        "Python and torch keep the versions of the calibration.",
    ),
    (
        "E503",
        "judge",
        "Other seed",
        "The seed is the injected one on both sides.",
    ),
)

_OFFERED = _entries(
    ("D901", "judge", "Synchronisation in every micro-step", "The device waits for a value."),
    ("D902", "judge", "32-bit arithmetic", "The device multiplies faster in 16 bits."),
    ("D903", "judge", "Data on the critical path", "The step waits for its rows."),
    ("P601", "judge", "Promotion waiting", "A confirmed change can be applied here."),
)

CATALOGUE: dict[str, Code] = {
    **_WORKLOAD,
    **_LOSS,
    **_TIMING,
    **_SCOPE,
    **_ENVIRONMENT,
    **_OFFERED,
}
"""All codes by name."""
