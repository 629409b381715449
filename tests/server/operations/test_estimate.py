import json

from infrarsi_server.operations.estimate import estimate_lines

JOB = {"hardware": "A100-SXM-80GB", "n_gpus": 8, "n_params": 7e9, "seq_len": 2048}


def test_each_line_that_is_not_blank_has_one_answer():
    lines = [json.dumps(JOB), "", "not json", "[1]", '{"hardware": "A100", "n_params": 7e9}']
    answers = [line.model_dump() for line in estimate_lines(lines)]
    assert answers[0]["peak_mem_gib"]["low"] > 0
    assert [set(answer) for answer in answers[1:]] == [{"error"}] * 3
    assert "A100-SXM-80GB" in answers[3]["error"]
