"""Memory-hungry moves together with the cheapest savers that make them fit, as one candidate.

A move that promises time but may not fit is joined by one to four savers in the order of what a
GiB saved costs in time; which of these bundles is worth a trial is the acquisition's to say. The
reverse, dropping a saver that is no longer needed, is a single move and is among those anyway.
"""

import numpy as np
from numpy.typing import NDArray

from infrarsi.models.encoding import Floats, Rows
from infrarsi.search.beliefs import Beliefs

_UNSURE = 0.7
_MOST_HUNGRY = 12
_MOST_SAVERS = 4
_LEAST_SAVED = 0.005
_LEAST_GAIN = 0.002


def paired(row: Rows, moves: Rows, beliefs: Beliefs) -> Rows:
    """Rows of hungry moves and savers put together, allowed or not.

    Args:
        row: the setting that is moved from, shape (n_knobs,).
        moves: settings one move away from it, shape (n, n_knobs).
        beliefs: with models of time and memory; without both nothing is paired.
    """
    if beliefs.step_time is None or beliefs.memory is None or beliefs.limit_gib is None:
        return moves[:0]
    if not len(moves):
        return moves
    all_rows = np.concatenate([row[None, :], moves])
    time, _ = beliefs.step_time.log_time(all_rows)
    memory = np.log(beliefs.memory.predict(all_rows).value)
    slower, larger = time[1:] - time[0], memory[1:] - memory[0]
    p_fit = beliefs.p_fit(moves)
    hungry = _first(-slower, (slower < -_LEAST_GAIN) & (p_fit < _UNSURE), _MOST_HUNGRY)
    price = np.maximum(slower, 0.0) / np.maximum(-larger, _LEAST_SAVED)
    savers = _first(-price, larger < -_LEAST_SAVED, len(moves))
    made = [joined for h in hungry for joined in _joined(row, moves[h], [moves[s] for s in savers])]
    return np.stack(made) if made else moves[:0]


def _joined(row: Rows, hungry: Rows, savers: list[Rows]) -> list[Rows]:
    """The hungry move with the first saver, the first two and so on; one saver a knob."""
    made: list[Rows] = []
    together = hungry
    for saver in savers:
        moved = np.flatnonzero(saver != row)
        if (together[moved] != row[moved]).any():
            continue
        together = together.copy()
        together[moved] = saver[moved]
        made.append(together)
        if len(made) == _MOST_SAVERS:
            break
    return made


def _first(order: Floats, wanted: NDArray[np.bool_], n: int) -> list[int]:
    """Indices of the wanted with the highest `order`, at most `n`."""
    ranked = np.argsort(-order, kind="stable")
    return [int(i) for i in ranked if wanted[i]][:n]
