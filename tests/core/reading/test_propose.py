from pathlib import Path

import pytest

from infrarsi.contract import JobConfig, add_job, matches, parse_config
from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, bare_job, default_job, propose_contract, read

DENSE = (Path(__file__).parents[3] / "examples/dense_gpt/train.py").read_text()
TEXTS = {
    "my job/train.py": DENSE.replace("import math\n", "import math\nimport evaluate\nimport net\n"),
    "my job/evaluate.py": "NAME = 'scores.csv'\n",
    "my job/net.py": "",
    "my job/data/text.txt": "",
    "my job/scores.csv": "",
    "other.csv": "",
    "README.md": "",
}
SOURCES = MappingSources(TEXTS)
LAUNCH = parse_launch("torchrun --nproc-per-node 2 'my job/train.py' --lr 1e-4")
READING = read(SOURCES, LAUNCH)
JOB = default_job("dense", LAUNCH, READING, ".venv/bin/python", SOURCES)


def _given(job: JobConfig, **facts: int) -> JobConfig:
    return JobConfig(**{**job.model_dump(), "facts": facts})


def test_the_default_job_opens_the_model_and_locks_data_and_evaluation():
    assert JOB.editable == ("my job/train.py", "my job/net.py")
    locked = [path for path in TEXTS if matches(path, JOB.locked)]
    assert locked == ["my job/data/text.txt", "my job/scores.csv"]
    assert not [path for path in locked if matches(path, JOB.editable)]


def test_a_configuration_file_the_job_loads_is_open_like_its_code():
    loads = "import yaml\nCONFIG = yaml.safe_load(open('c.yaml'))\nREPORT = 'r.json'\n"
    texts = {"train.py": loads + DENSE, "c.yaml": "a: 1\n", "r.json": "{}\n"}
    launch = parse_launch("python train.py")
    sources = MappingSources(texts)
    job = default_job("main", launch, read(sources, launch), "python", sources)
    assert job.editable == ("train.py", "c.yaml")
    assert [path for path in texts if matches(path, job.locked)] == ["r.json"]


def test_a_bare_folder_opens_script_configuration_and_launch_file():
    loads = "import yaml, net\nCONFIG = yaml.safe_load(open('c.yaml'))\n"
    texts = {
        "train.py": loads + DENSE,
        "net.py": "",
        "c.yaml": "a: 1\n",
        "launch.sh": "",
        "x/y": "",
    }
    launch = parse_launch("python train.py")
    sources = MappingSources(texts)
    job = bare_job("main", launch, read(sources, launch), sources, "launch.sh")
    assert job.editable == ("train.py", "c.yaml", "launch.sh")
    assert job.locked == ("net.py", "x/y")
    many = {**texts, **{f"data/{n}.txt": "" for n in range(600)}}
    job = bare_job("main", launch, read(sources, launch), MappingSources(many), None)
    assert job.locked == ("data/", "launch.sh", "net.py", "x/")


def test_the_default_job_is_written_and_read_back_with_its_launch():
    text = add_job(None, JOB, READING.facts)
    assert parse_config(text).jobs == {"dense": JOB}
    assert parse_launch(JOB.launch) == LAUNCH
    assert "micro_batch" in text
    assert "my job/train.py:" in text


def test_the_contract_holds_what_was_read():
    contract = propose_contract(JOB, LAUNCH, READING)
    assert contract.workload.model_dump() == {
        "global_batch_rows": 4,
        "seq_len_tokens": 512,
        "world_size": 2,
    }
    assert contract.precision == "fp32"
    assert contract.seed == 1337
    assert contract.facts == READING.facts
    assert contract.memory_limit_bytes is None


def test_a_memory_limit_is_held_in_bytes():
    job = JOB.model_copy(update={"memory_limit_gib": 1.5})
    assert propose_contract(job, LAUNCH, READING).memory_limit_bytes == 3 << 29


def test_what_the_user_says_goes_before_what_was_read():
    contract = propose_contract(_given(JOB, seq_len=256, seed=5), LAUNCH, READING)
    assert contract.workload.seq_len_tokens == 256
    assert contract.seed == 5
    fact = contract.fact("seq_len")
    assert fact is not None
    assert (fact.given, fact.place) == (True, None)
    tokens = contract.fact("tokens_per_step")
    assert tokens is not None
    assert tokens.value == 4 * 256


@pytest.mark.parametrize(("given", "rows"), [({}, None), ({"accumulation": 4}, 8)])
def test_a_factor_the_user_gives_completes_the_product(given: dict[str, int], rows: int | None):
    text = DENSE.replace("GLOBAL_BATCH = 4", "GLOBAL_BATCH = int(input())")
    sources = MappingSources({"train.py": text})
    launch = parse_launch("torchrun --nproc-per-node 2 train.py")
    reading = read(sources, launch)
    job = _given(default_job("dense", launch, reading, "python"), **given)
    contract = propose_contract(job, launch, reading)
    assert contract.workload.global_batch_rows == rows
