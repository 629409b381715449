"""Launch choices, their constraints, and how a value reaches the job."""

from infrarsi.knobs.knob import Binding, Candidate, Knob, Setting, Space

__all__ = ["Binding", "Candidate", "Knob", "Setting", "Space"]
