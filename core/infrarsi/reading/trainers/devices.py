"""How many processes Lightning and Fabric run: those of the launch line, or devices times nodes."""

import ast

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.operators import binary
from infrarsi.reading.trainers.settings import Settings, plain
from infrarsi.reading.values import Known, Many, Origin, Unknown, Value


def lightning_world(evaluator: Evaluator, settings: Settings) -> Value:
    """The number of processes; unknown where it is left to the machine."""
    launch = evaluator.launch
    if launch.launcher != "python":
        origin = Origin("launcher", "world_size", launch.n_processes)
        return Known(launch.n_processes, (origin,))
    devices = _count(settings)
    nodes = settings.get("num_nodes") or Known(1)
    return devices if isinstance(devices, Unknown) else binary(ast.Mult(), devices, nodes)


def _count(settings: Settings) -> Value:
    value = settings.get("devices")
    if isinstance(value, Many):
        return Known(len(value.items))
    given = plain(value)
    if isinstance(given, str) and given.strip().isdigit():
        return Known(int(given), value.origins if isinstance(value, Known) else ())
    if isinstance(given, str) and "," in given:
        return Known(len([part for part in given.split(",") if part.strip()]))
    if value is not None and not isinstance(value, Known):
        return value if isinstance(value, Unknown) else Unknown("the devices are not known")
    if given is None or given in {"auto", "-1", -1}:
        on_cpu = plain(settings.get("accelerator")) == "cpu"
        return Known(1) if on_cpu else Unknown("how many devices are used depends on the machine")
    return value if isinstance(given, int) and value else Unknown("the devices are not known")
