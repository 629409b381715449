"""The one base of every record: frozen, strict, unknown fields and NaN refused.

Domain records and wire messages share it, so that what crosses a process is checked by the
same rules as what is built in memory, without a second set of types and a conversion.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StrictBool, StrictFloat, StrictInt, StrictStr

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
"""A knob's or fact's value."""

Text = Annotated[str, "single line or short text shown to a person"]


class Frozen(BaseModel):
    """A frozen record: keyword-only, strict, no unknown fields, no NaN or infinity."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)
