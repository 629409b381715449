"""Evidence to verdict; one file a clause."""

from infrarsi.judge.audit_numbers import compare
from infrarsi.judge.evidence import EnduranceRun, JudgedEvidence
from infrarsi.judge.judging import judge
from infrarsi.judge.verdict import Verdict

__all__ = ["EnduranceRun", "JudgedEvidence", "Verdict", "compare", "judge"]
