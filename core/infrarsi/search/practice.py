"""Common practice: what a value usually does, told from its knob's name, where nobody claims it.

Weak claims of one source, believed and revised like any other's. The figures are rounded from the
tuning guides of the public trainers whose runs `estimate` was fitted on; trials soon say more.
"""

import re

from infrarsi.frozen import Scalar
from infrarsi.models.encoding import EncodedKnob
from infrarsi.search.claims import SearchClaim
from infrarsi.search.space import SearchSpace

SOURCE = "common practice"

_OFF = r"off|none|no|false|0|"
_SAVER, _HUNGRY, _NEUTRAL = "saver", "hungry", "neutral"

_RECOMPUTES = (
    r"((act|activations?|grad|gradient) )?(ckpt|check ?point(s|ing)?)( (mode|policy|class))?"
    r"|.*(recompute|remat).*"
)
_ATTENTION = (
    r"(use )?(flash( att(e)?n(tion)?)?|sdpa|att(e)?n(tion)?)"
    r"( (impl|implementation|backend|kernel|\d))*"
)

_KNOWN: tuple[tuple[str, str, float, float, str], ...] = (
    (r".*offload.*", f"(?!({_OFF})$).*", -0.15, 0.12, _SAVER),
    (_RECOMPUTES, "full|true|on|all", -0.22, 0.08, _SAVER),
    (_RECOMPUTES, "selective.*|attn.*", -0.05, 0.05, _SAVER),
    (_ATTENTION, "flash( attention)? ?3|fa3|cudnn|te", 0.10, 0.08, _NEUTRAL),
    (_ATTENTION, "flash.*|fa2?|sdpa|mem.*efficient|true", 0.08, 0.08, _SAVER),
    (r".*(sdpa|flash|triton).*", "true|on", 0.08, 0.08, _SAVER),
    (r"(torch |use )*compile( mode)?", "max autotune.*", 0.10, 0.12, _NEUTRAL),
    (r"(torch |use )*compile( mode)?", f"(?!({_OFF}|eager)$).*", 0.10, 0.08, _NEUTRAL),
    (r".*(cuda|hip) graphs?", "true|on|full.*", 0.03, 0.05, _HUNGRY),
    (r".*reduc(e|tion).*(dtype|precision)", ".*", 0.0, 0.02, _NEUTRAL),
    (r"(use )?(fp8|float8)( \w+)?|precision|(compute |param )?dtype", ".*fp8.*|float8|hybrid|true",
     0.15, 0.12, _NEUTRAL),
    (r"(use )?bf16( \w+)?|(mixed )?precision|(compute |param )?dtype|.*autocast.*",
     "bf16( mixed)?|bfloat16|true", 0.30, 0.25, _SAVER),
    (r".*tf32|.*matmul precision", "true|on|high|medium", 0.15, 0.15, _NEUTRAL),
    (r".*(chunk|fused).*( ce|cross entropy|loss)|.*cross entropy.*fus.*", "true|on", 0.02, 0.04,
     _SAVER),
    (r"(.* )?(adamw?|optim(izer)?)( \w+)?", ".*fused.*", 0.02, 0.03, _NEUTRAL),
    (r"(.* )?(adamw?|optim(izer)?)( \w+)?", ".*foreach.*", 0.01, 0.02, _HUNGRY),
    (r".*foreach.*", "true|on", 0.01, 0.02, _HUNGRY),
    (r"async (tp|tensor parallel)|.*overlap.*", "true|on", 0.04, 0.04, _HUNGRY),
    (r".*prefetch.*", "true|on", 0.02, 0.03, _NEUTRAL),
    (r"sequence parallel|sp", "true|on", 0.02, 0.04, _SAVER),
    (r".*pin(ned)?( memory)?", "true|on", 0.01, 0.015, _NEUTRAL),
    (r"(.* )?gc( .*)?|.*garbage.*", "true|on", 0.01, 0.015, _NEUTRAL),
    (r".*alloc.*", ".*expandable.*", 0.0, 0.01, _SAVER),
    (r".*workers.*", "[1-9].*", 0.02, 0.03, _NEUTRAL),
    (r".*empty cache.*|empty unused.*", "true|on", -0.03, 0.03, _SAVER),
    (r".*(grouped|expert.*(matmul|gemm|batched)).*", "true|on", 0.10, 0.12, _NEUTRAL),
    (r".*no ?sync|.*(drop|fewer|no) .*sync.*", "true|on", 0.03, 0.04, _NEUTRAL),
    (r".*fus(ed|ion).*", "true|on", 0.02, 0.03, _NEUTRAL),
    (r".*in ?place.*|.*set to none.*|.*zero grad.*", "true|on", 0.01, 0.02, _SAVER),
)  # fmt: skip


def common_practice(space: SearchSpace, claims: tuple[SearchClaim, ...]) -> tuple[SearchClaim, ...]:
    """Claims for the values nobody claims anything of, relative to the baseline's own value."""
    spoken = {(c.knob, c.value) for c in claims}
    made: list[SearchClaim] = []
    for knob in space.knobs:
        start = _known(knob, space.baseline[knob.name])
        for value in knob.choices:
            if value == space.baseline[knob.name] or (knob.name, value) in spoken:
                continue
            known = _known(knob, value)
            if known is not None or start is not None:
                made.append(_claim(knob, value, known, start))
    return tuple(made)


_Known = tuple[float, float, str]


def _known(knob: EncodedKnob, value: Scalar) -> _Known | None:
    name, spelled = _words(knob.name), _words(value)
    for names, values, log_speedup, sd, role in _KNOWN:
        if re.fullmatch(names, name) and re.fullmatch(values, spelled):
            return log_speedup, sd, role
    return None


def _claim(
    knob: EncodedKnob, value: Scalar, known: _Known | None, start: _Known | None
) -> SearchClaim:
    gain, sd, role = known or (0.0, 0.0, _NEUTRAL)
    start_gain, start_sd, start_role = start or (0.0, 0.0, _NEUTRAL)
    return SearchClaim(
        knob=knob.name,
        value=value,
        log_speedup=gain - start_gain,
        sd=max(0.01, (sd * sd + start_sd * start_sd) ** 0.5),
        memory_role=role if start is None else _turned(role, start_role),
        source=SOURCE,
        kind="patch" if knob.is_patch else "setting",
    )


def _turned(role: str, start_role: str) -> str:
    if role == start_role:
        return _NEUTRAL
    return {_SAVER: _HUNGRY, _HUNGRY: _SAVER}.get(start_role, role)


def _words(text: Scalar) -> str:
    return re.sub(r"[^a-z0-9]+", " ", str(text).lower()).strip()
