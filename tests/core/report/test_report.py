import json

import recorded_results as results

from infrarsi.contract.catalogue import CATALOGUE, violation
from infrarsi.edits import Edit, apply_edits
from infrarsi.knobs import Candidate
from infrarsi.place import Place
from infrarsi.reading.reading import Problem
from infrarsi.report.findings import as_github, as_text, finding, findings, problem_text
from infrarsi.report.markdown import as_markdown, describe_resolvable
from infrarsi.report.model import Report, build_report
from infrarsi.report.outcomes import describe_outcome, describe_setting
from infrarsi.report.printable import fenced, one_line, printable
from infrarsi.report.sarif import as_sarif
from infrarsi.trial import Crashed, ShortRun, TurnedAway
from infrarsi.wire.results import Interval, Price, Reliability, Resolvable, RunResult

PLACE = Place(file="a b,c.py", line=3, column=5, end_line=3, end_column=9)


def report() -> Report:
    result = results.run_result(promoted=results.promotion())
    return build_report(result, {"train.py": results.TRAIN})


def test_the_report_has_what_the_plan_promises() -> None:
    content = json.loads(report().model_dump_json())
    assert {"contract", "calibration", "trials", "cost", "promoted"} <= content.keys()
    promoted = content["promoted"]
    assert promoted["speedup"]["ratio"] == 1.93
    assert {"low", "high"} <= promoted["speedup"].keys()
    assert promoted["mfu_before_frac"] < promoted["mfu_after_frac"]
    assert [part["knob"] for part in promoted["parts"]] == ["micro_batch", "bf16_autocast"]


def test_a_report_decodes_from_its_own_json() -> None:
    made = report()
    assert Report.model_validate_json(made.model_dump_json()) == made


def test_a_campaign_without_promotion_says_so_and_has_null() -> None:
    made = build_report(results.run_result(promoted=None), {})
    assert json.loads(made.model_dump_json())["promoted"] is None
    page = as_markdown(made)
    assert "Nothing was promoted" in page
    assert "not resolved" in page


def test_changed_lines_are_whole_lines_with_their_number() -> None:
    promoted = report().promoted
    assert promoted is not None
    changes = [(c.line, c.before, c.after) for c in promoted.changes]
    assert changes == [
        (3, "BATCH = 2\n", "BATCH = 4\n"),
        (4, "ACCUMULATE = 4\n", "ACCUMULATE = 2\n"),
        (7, "    loss = f()\n", "    with autocast():\n        loss = f()\n"),
    ]


def changed(text: str, edit: Edit) -> tuple[int | None, str, str]:
    promotion = results.promotion().model_copy(update={"edits": (edit,)})
    made = build_report(results.run_result(promoted=promotion), {"train.py": text}).promoted
    assert made is not None
    [change] = made.changes
    return change.line, change.before, change.after


def test_insertions_and_deletions_show_only_their_own_lines() -> None:
    text = "a\nb\nc"
    assert changed(text, Edit(file="train.py", start=2, old="", new="x\n")) == (2, "", "x\n")
    assert changed(text, Edit(file="train.py", start=2, old="b\n", new="")) == (2, "b\n", "")
    assert changed(text, Edit(file="train.py", start=4, old="c", new="d")) == (3, "c", "d")
    assert changed(text, Edit(file="train.py", start=1, old="\n", new=" ")) == (
        1,
        "a\nb\n",
        "a b\n",
    )


def test_changed_lines_of_a_source_that_is_gone_have_no_number() -> None:
    edit = Edit(file="train.py", start=2, old="zzz", new="y")
    assert changed("a\nb\n", edit) == (None, "zzz", "y")


def test_the_page_names_every_trial_its_outcome_and_the_cost_of_failures() -> None:
    page = as_markdown(report())
    for trial in results.TRIALS:
        assert f"| {trial.number} |" in page
        assert describe_outcome(trial.outcome).split("|")[0] in page.replace("\\", "")
    assert "of which 5 failed (1 out of memory): 1 min 40 s" in page
    assert "1.93x [1.85, 2.02] 95%" in page
    assert "24.5 % → 47.3 %" in page
    assert "can tell no gain" in page


def learned() -> Report:
    """A report of a campaign that turned a candidate away and knows prices."""
    crashed = Crashed(cause="poisoned | <b>")
    result = results.run_result(promoted=None)
    trials = tuple(
        t.model_copy(update={"predicted_step_time_s": (1.0, 0.5, 3.0)}) for t in result.trials
    )
    return build_report(
        result.model_copy(
            update={
                "trials": trials,
                "prices": (
                    Price(
                        knob="micro_batch",
                        value=4,
                        step_time_s=Interval(value=-0.5, low=-0.6, high=-0.4, level=0.9),
                        peak_mem_bytes=Interval(value=2.0**30, low=0.0, high=2.0**31, level=0.9),
                        n_trials=2,
                    ),
                    Price(knob="micro_batch", value=8),
                ),
                "reliability": (
                    Reliability(
                        source="recipe",
                        kind="patch",
                        n=3,
                        kept_frac=Interval(value=0.8, low=0.5, high=1.1, level=0.9),
                    ),
                ),
                "turned_away": (
                    TurnedAway(
                        before_trial=2,
                        candidate=Candidate(setting={"micro_batch": 8, "bf16_autocast": True}),
                        outcome=crashed,
                        short_runs=(
                            ShortRun(
                                kind="smoke", candidate=Candidate(), outcome=crashed, wall_s=4.0
                            ),
                        ),
                        blamed={"bf16_autocast": True},
                    ),
                ),
                "cost": result.cost.model_copy(update={"smoke_s": 12.0, "n_turned_away": 1}),
            }
        ),
        {},
    )


def test_the_page_shows_prices_trust_and_how_predictions_came() -> None:
    page = as_markdown(learned())
    assert (
        "| micro_batch=4 | -500 ms [-600 ms, -400 ms] | +1.00 GiB [+0 MiB, +2.00 GiB] | 2 |" in page
    )
    assert "micro_batch=8 | not measured" not in page
    assert "| recipe | patch | 3 | 80.0 % [50.0 %, 110.0 %] |" in page
    assert "step times fell within their 90 % interval" in page
    assert "smoke runs before trials: 12.00 s" in page


def test_the_page_names_what_was_turned_away_and_what_is_to_blame() -> None:
    page = as_markdown(learned())
    line = next(line for line in page.splitlines() if line.startswith("| trial 2 |"))
    assert "crashed: poisoned \\| &lt;b>" in line
    assert line.endswith("| bf16_autocast | 4.00 s |")


def test_a_campaign_that_learned_nothing_has_no_empty_sections() -> None:
    page = as_markdown(report())
    assert "What the trials taught" not in page
    assert "Turned away" not in page


def test_results_without_the_searchs_own_fields_still_decode() -> None:
    made = json.loads(results.run_result(promoted=None).model_dump_json())
    for name in ("turned_away", "anchors", "prices", "reliability"):
        del made[name]
    for name in ("smoke_s", "memory_probe_s", "anchor_s", "n_turned_away"):
        del made["cost"][name]
    for trial in made["trials"]:
        for name in ("at_s", "short_runs", "anchored_step_time_s", "reading_log_sd"):
            del trial[name]
        del trial["predicted_peak_mem_bytes"], trial["predicted_p_valid"]
    decoded = RunResult.model_validate_json(json.dumps(made))
    assert decoded == results.run_result(promoted=None)


def test_a_hostile_log_cannot_leave_its_block_or_steer_a_terminal() -> None:
    page = as_markdown(report())
    assert "\x1b" not in page
    assert "````\nTraceback ``` <b>" in page
    assert "recognised \\| in &lt;train.py>" in page


def test_the_diff_in_the_page_is_the_promotions_edit() -> None:
    page = as_markdown(report())
    assert "-BATCH = 2\n+BATCH = 4" in page
    assert apply_edits(results.TRAIN, results.EDITS).count("autocast") == 1


def test_a_setting_reads_as_a_person_would_write_it() -> None:
    assert describe_setting({"micro_batch": 8, "sdpa": True, "drop": False}) == (
        "micro_batch=8, sdpa, no drop"
    )
    assert describe_setting({}) == "baseline"


def test_control_characters_never_reach_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\x9bc\u202ed\r\ne\tf") == "abcd\ne\tf"
    assert one_line("x" * 300, 10) == "x" * 9 + "…"
    assert fenced("``` and ````").startswith("`````\n")


def test_a_finding_has_the_public_shape() -> None:
    found = finding(violation("W101", "8 rows became 4.", place=PLACE))
    assert json.loads(found.model_dump_json()) == {
        "code": "W101",
        "family": "workload",
        "severity": "error",
        "file": "a b,c.py",
        "line": 3,
        "column": 5,
        "end_line": 3,
        "end_column": 9,
        "message": "8 rows became 4.",
    }


def test_findings_are_ordered_by_place() -> None:
    late = PLACE.model_copy(update={"line": 9})
    found = findings([violation("W102", "b", place=late), violation("W101", "a", place=PLACE)])
    assert [f.code for f in found] == ["W101", "W102"]


def test_text_lines_are_clickable_and_github_lines_escaped() -> None:
    found = [
        finding(violation("W101", "50% of\nrows", place=PLACE)),
        finding(violation("T301", "x")),
    ]
    assert as_text(found) == "a b,c.py:3:5: error W101 50% of rows\nerror T301 x\n"
    first, second = as_github(found).splitlines()
    assert first == (
        "::error file=a b%2Cc.py,line=3,endLine=3,col=5,title=InfraRSI W101::50%25 of%0Arows"
    )
    assert second == "::error title=InfraRSI T301::x"


def test_sarif_points_each_result_at_its_rule() -> None:
    found = [finding(violation("W101", "m", place=PLACE)), finding(violation("T301", "n"))]
    [run] = as_sarif(found, ["train.py:1:1: odd"], "0.1.0")["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[r["ruleIndex"]]["id"] for r in run["results"]] == ["W101", "T301"]
    assert rules[1]["fullDescription"]["text"] == CATALOGUE["W101"].summary
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "a%20b%2Cc.py"
    assert location["region"]["endColumn"] == 9
    assert "locations" not in run["results"][1]
    [note] = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"] == "train.py:1:1: odd"


def test_a_problem_is_one_line_with_its_place() -> None:
    assert problem_text(Problem(what="cannot\nread", place=PLACE)) == "a b,c.py:3:5: cannot read"
    assert problem_text(Problem(what="x")) == "x"


def test_what_the_noise_lets_through_reads_as_percent_or_ratio() -> None:
    told = [
        describe_resolvable(Resolvable(minutes=8, gain_frac=frac)).split(" tell ")[1]
        for frac in (0.041, 3.0, 15000.0, None)
    ]
    assert told == [
        "a gain of 4.1 % from noise",
        "a gain of 4.00x from noise",
        "no gain from noise",
        "no gain from noise",
    ]
