"""Values left on their device until after the window, so that counting never waits for one."""

import math


def settled(tensor):
    """The tensor's value where reading it costs nothing (on the CPU), else the tensor."""
    return tensor.item() if tensor.device.type == "cpu" else tensor


def number(value):
    """A finite float of a number or one-element tensor, else None. Waits for the device."""
    try:
        value = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return value if math.isfinite(value) else None
