import json
import subprocess
import sys

from toy_cluster import BASELINE, CLAIMS, SPACE

from infrarsi.search import Searcher
from infrarsi.search.jsonl import serve

OK = {"status": "ok", "step_time_s": 1.0, "peak_mem_gib": 1.0}
START = {"op": "start", "space": SPACE, "claims": list(CLAIMS), "seed": 3}


def talk(*requests):
    lines = [r if isinstance(r, str) else json.dumps(r) for r in requests]
    answers = []
    serve(lines, answers.append)
    return [json.loads(a) for a in answers]


def test_it_answers_like_the_searcher_itself():
    searcher = Searcher(SPACE, claims=CLAIMS, seed=3)
    searcher.tell(BASELINE, OK)
    _, told, asked, best, predicted, prices = talk(
        START,
        {"op": "tell", "setting": BASELINE, "outcome": OK},
        {"op": "ask"},
        {"op": "best"},
        {"op": "predict", "settings": [{"bf16": True}]},
        {"op": "prices"},
    )
    assert told == {"ok": True, "result": None}
    assert asked["result"] == searcher.ask()
    assert best["result"] == BASELINE
    assert predicted["result"] == searcher.predict([{"bf16": True}])
    assert prices["result"] == searcher.prices()


def test_conflicts_are_never_asked():
    conflict = {"bf16": True, "sdpa": True}
    answers = talk({**START, "conflicts": [conflict]}, *[{"op": "ask"}] * 30)
    asked = [a["result"] for a in answers[1:]]
    assert not any(s["bf16"] and s["sdpa"] for s in asked)
    assert any(s["bf16"] for s in asked)


def test_ask_answers_null_when_every_allowed_setting_was_tried():
    space = {"knobs": {"a": {"type": "bool", "kind": "patch"}, "b": {"type": "bool"}}}
    start = {"op": "start", "space": space, "conflicts": [{"a": True, "b": True}]}
    answers = talk(start, *[{"op": "ask"}] * 5)
    assert all(a["ok"] for a in answers)
    asked = [a["result"] for a in answers[1:]]
    assert None not in asked[:3]
    assert asked[3:] == [None, None]


def test_a_space_without_knobs_has_its_baseline_and_no_more():
    answers = talk(
        {"op": "start", "space": {"knobs": {}}},
        {"op": "ask"},
        {"op": "tell", "setting": {}, "outcome": OK},
        {"op": "ask"},
        {"op": "predict", "settings": [{}]},
        {"op": "best"},
        {"op": "prices"},
    )
    assert all(a["ok"] for a in answers)
    _, asked, _, exhausted, predicted, best, prices = [a["result"] for a in answers]
    assert (asked, exhausted, best, prices) == ({}, None, {}, [])
    assert abs(predicted[0]["step_time_s"]["value"] - 1.0) < 0.01


def test_bad_requests_are_answered_with_two_sentences_and_do_not_end_it():
    answers = talk(
        {"op": "ask"},
        "{not json",
        "[1]",
        {"op": "start"},
        {**START, "claims": 5},
        {**START, "claims": [{"knob": "bf16", "sd": "wide"}]},
        START,
        {"op": "dance"},
        {"op": "tell", "setting": {"nope": 1}, "outcome": OK},
        {"op": "best"},
    )
    assert [a["ok"] for a in answers] == [False] * 6 + [True, False, False, True]
    assert all(a["what"] and a["do"] for a in answers if not a["ok"])


def test_it_runs_as_a_child_process():
    requests = "\n".join(json.dumps(r) for r in (START, {"op": "ask"})) + "\n"
    done = subprocess.run(
        [sys.executable, "-m", "infrarsi.search"],
        input=requests,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[1] == {"ok": True, "result": BASELINE}
