"""What the promotion protocol promises on this machine, from recorded A/A process pairs.

Shows that balanced units centre on a ratio of 1, though the job started first is slower; then
runs simulated campaigns made of the recorded pairs, in several worlds, under the rule of
`infrarsi.stats` by which real campaigns promote; then the power of that rule for the same noise.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from measures import write_measures
from noise_pairs import TINY_JOB, RecordedPair, record

from infrarsi.contract.contract import Protocol
from infrarsi.pair import Unit
from infrarsi.stats.noise import fit_noise
from infrarsi.stats.power import promotion_chances, smallest_gain
from infrarsi.stats.recorded import FEWEST_PAIRS, WORLDS, Centre, RecordedNoise, centre
from infrarsi.stats.validation import simulate_campaigns
from infrarsi_runner.procedures.calibrating import AUDITED_COST
from infrarsi_runner.procedures.control import MOST_UNITS, n_control_units, unit_cost_s

CURVE_PCT = (2, 3, 5, 7, 10, 15, 20)
POWER = 0.9
DEMO_S = 12 * 60.0
DEMO_TRIALS_S = 120.0
"""The demo's budget and what at most its trials take of it."""

DEMO_STEP_S = 0.61
NIGHT_S = 8 * 3600.0
NIGHT_LOOKS = (8, 16, 32, 64)


def as_units(pairs: Sequence[RecordedPair]) -> list[Unit]:
    """Adjacent pairs, which start in both orders, as the runner makes units."""
    return [Unit(pairs=(a.pair, b.pair)) for a, b in zip(pairs[0::2], pairs[1::2], strict=False)]


def centred(pairs: Sequence[RecordedPair]) -> dict[str, float]:
    """Mean ratios, in percent off 1, of units and of single pairs by which side started first."""
    by_side = {
        side: [r.pair.log_ratio() for r in pairs if r.pair.started_first == side]
        for side in ("baseline", "candidate")
    }
    units = [unit.log_ratio() for unit in as_units(pairs)]
    slots = [unit.slot_log_ratio() for unit in as_units(pairs)]
    seen = {
        "unit_bias": centre(units),
        "baseline_first": centre(by_side["baseline"]),
        "candidate_first": centre(by_side["candidate"]),
        "first_is_slower": centre([r.first_over_second() for r in pairs]),
    }
    measures = {key: value for name, c in seen.items() for key, value in _in_pct(name, c).items()}
    noise = fit_noise(units, slots)
    return {
        "n_pairs": len(pairs),
        **measures,
        "units_centre_on_one": float(seen["unit_bias"].low <= 0 <= seen["unit_bias"].high),
        "unit_sd_pct": 100 * (noise.sd or 0.0),
    }


def _in_pct(name: str, found: Centre) -> dict[str, float]:
    values = {"": found.mean, "_low": found.low, "_high": found.high}
    return {f"{name}{end}_pct": 100 * math.expm1(value) for end, value in values.items()}


def false_promotions(
    pairs: tuple[float, ...], protocol: Protocol, n_campaigns: int
) -> dict[str, float]:
    """Upper bounds in percent, by world; each the worse of one or more A/A units."""
    bounds: dict[str, float] = {}
    for name, world in WORLDS.items():
        noise = RecordedNoise(pairs=pairs, world=world)
        results = [
            simulate_campaigns(noise, n_aa, protocol, n_campaigns, seed=3)
            for n_aa in range(1, MOST_UNITS + 1)
        ]
        bounds[f"false_promotion_{name}_upper_pct"] = 100 * max(r.upper_bound() for r in results)
    return {**bounds, "false_promotion_upper_pct": max(bounds.values()), "n_campaigns": n_campaigns}


def powers(pairs: tuple[float, ...], protocol: Protocol, step_s: float) -> dict[str, float]:
    """The power curve in the demo's budget, and what a night resolves."""
    noise = RecordedNoise(pairs=pairs)
    n_aa = n_control_units(protocol, step_s)
    unit_s = AUDITED_COST * unit_cost_s(protocol, step_s)
    begun = 1 + int((DEMO_S - DEMO_TRIALS_S) / unit_s)
    n_demo = min(begun, protocol.looks[-1])
    curve = promotion_chances(noise, n_aa, protocol, n_demo, [p / 100 for p in CURVE_PCT])
    full = promotion_chances(noise, n_aa, protocol, protocol.looks[-1], [0.1])
    night = protocol.model_copy(update={"looks": NIGHT_LOOKS})
    n_night = min(int(NIGHT_S / unit_s), NIGHT_LOOKS[-1])
    overnight = smallest_gain(noise, n_aa, night, n_night, POWER)
    default = smallest_gain(noise, n_aa, protocol, protocol.looks[-1], POWER)
    return {
        "demo_units": n_demo,
        "demo_unit_cost_s": unit_s,
        **{f"power_at_{p}pct_gain": power for p, power in zip(CURVE_PCT, curve, strict=True)},
        "power_at_10pct_gain_all_looks": full[0],
        **_gain("gain_resolved_all_looks_pct", default),
        **_gain("gain_resolved_overnight_pct", overnight),
    }


def _gain(name: str, gain_frac: float | None) -> dict[str, float]:
    """In percent; no measure at all where no gain would be resolved."""
    return {} if gain_frac is None else {name: 100 * gain_frac}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40, help="process pairs, a multiple of 4")
    parser.add_argument("--campaigns", type=int, default=100_000, help="in each world")
    parser.add_argument("--step-s", type=float, default=DEMO_STEP_S, help="the demo's step time")
    parser.add_argument("--job", type=Path, default=TINY_JOB, help="a folder with train.py")
    parser.add_argument("--record-only", action="store_true")
    options = parser.parse_args()
    protocol = Protocol()
    pairs = record(options.job, options.pairs, protocol)
    if options.record_only:
        return
    if len(pairs) < FEWEST_PAIRS:
        parser.error(f"{len(pairs)} pairs are recorded and {FEWEST_PAIRS} are the fewest.")
    slots = tuple(pair.first_over_second() for pair in pairs)
    measures = {
        **centred(pairs),
        **false_promotions(slots, protocol, options.campaigns),
        **powers(slots, protocol, options.step_s),
    }
    for name, value in measures.items():
        print(f"{name}: {value:.4g}")
    print(write_measures("noise", measures))


if __name__ == "__main__":
    main()
