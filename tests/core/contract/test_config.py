import pytest
import tomlkit

from infrarsi.contract import Fact, JobConfig, add_job, parse_config
from infrarsi.errors import ConfigError
from infrarsi.place import Place

PLACE = Place(file="train.py", line=21, column=15, end_line=21, end_column=16)
FACTS = (
    Fact(name="micro_batch", value=4, place=PLACE),
    Fact(name="optimizer", value='A"dam\nW'),
    Fact(name="seq_len", unknown="the loader is\nnot understood", guess=512),
    Fact(name="clip", unknown="computed"),
)
JOB = JobConfig(
    name="dense",
    launch="""python 'my jobs/train.py' --x "q\\"uote" """.strip(),
    python=".venv/bin/python",
    editable=("train.py",),
    locked=("**/data/**", "*.bin"),
)


def test_a_new_file_reads_back_as_the_job():
    assert parse_config(add_job(None, JOB, FACTS)).jobs == {"dense": JOB}


def test_every_fact_stands_in_the_file_with_its_place():
    text = add_job(None, JOB, FACTS)
    assert "#   micro_batch = 4  train.py:21\n" in text
    assert "# seq_len = 512  # the loader is not understood\n" in text
    assert "# clip = " in text


def test_a_guess_counts_once_its_comment_sign_is_removed():
    text = add_job(None, JOB, FACTS).replace("# seq_len", "seq_len")
    assert parse_config(text).jobs["dense"].facts == {"seq_len": 512}


def test_adding_twice_changes_nothing():
    once = add_job(None, JOB, FACTS)
    assert add_job(once, JOB, ()) == once


def test_what_the_user_wrote_stays_byte_for_byte():
    written = "# mine  \n[job.old]   # first\nlaunch = 'python old.py'  # why\n\n\n# end"
    text = add_job(written, JOB, FACTS)
    assert text.startswith(written)
    assert set(parse_config(text).jobs) == {"old", "dense"}


def test_an_edited_job_is_left_alone():
    edited = add_job(None, JOB, FACTS).replace("**/data/**", "**/mine/**")
    assert add_job(edited, JOB, FACTS) == edited


def test_the_file_is_ordinary_toml():
    document = tomlkit.parse(add_job(None, JOB, FACTS))
    assert document["job"]["dense"]["locked"] == ["**/data/**", "*.bin"]


def test_a_memory_limit_may_be_a_whole_number():
    text = '[job.x]\nlaunch = "python x.py"\nmemory_limit_gib = 6\n'
    assert parse_config(text).jobs["x"].memory_limit_gib == 6.0


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("runner = 1", 1, "`runner`"),
        ("[job.x]\nlaunch = 3", 2, "`launch`"),
        ("\n[job.x]\nlanch = 'python x.py'", 3, "`lanch`"),
        ("[job.x]\n# no\nlaunch = 'bash x.sh'", 3, "`bash`"),
        ("[job.x]\nlaunch = 'python x.py'\nfacts.lr = [1]", 3, "`lr`"),
        ("[job.x]\nlaunch = 'python x.py'\n[job.x.facts]\nlr = nan", 4, "`lr`"),
        ("job = 3", 1, "`job`"),
        ("[job.'a b']\nlaunch = 'python x.py'", 1, "`a b`"),
        ("[job.x]\npython = 'python'", 1, "`x`"),
        ("[job.x]\nlaunch = 'python x.py'\npython = ''", 3, "`python`"),
        ("[job.x]\nlaunch = 'python x.py'\nmemory_limit_gib = -1", 3, "memory_limit_gib"),
        ("[job.x]\nlaunch = 'python x.py'\nmemory_limit_gib = true", 3, "memory_limit_gib"),
        ("[job.x]\nlaunch = 'python x.py'\nlocked = 'data'", 3, "`locked`"),
        ("[job.x]\nlaunch = 'python x.py'\neditable = [1]", 3, "`editable`"),
        ("[job.x]\nlaunch = 'python x.py'\n[job.y]\nlaunch = 'python y.py'\na = 1", 5, "`a`"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_to_do(text: str, line: int, key: str):
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert f"line {line}:" in caught.value.what
    assert key in caught.value.what
    assert caught.value.do


def test_broken_toml_names_the_line():
    with pytest.raises(ConfigError) as caught:
        parse_config("[job.x]\nlaunch = \n")
    assert "line 2" in caught.value.what


def test_a_file_that_cannot_take_a_table_is_refused_rather_than_broken():
    with pytest.raises(ConfigError):
        add_job("job = { old = { launch = 'python old.py' } }\n", JOB)


def test_the_protocol_and_the_time_limit_are_the_users_to_set() -> None:
    text = '[job.a]\nlaunch = "python t.py"\ntimeout_s = 30\n[job.a.protocol]\nlooks = [1, 2]\n'
    job = parse_config(text).jobs["a"]
    assert job.timeout_s == 30
    assert job.protocol.looks == (1, 2)
    assert job.protocol.alpha == 0.01


@pytest.mark.parametrize("line", ["looks = []", "alpha = 0.5", "turns = 3", 'alpha = "low"'])
def test_a_protocol_that_cannot_be_used_is_refused_by_key(line: str) -> None:
    text = f'[job.a]\nlaunch = "python t.py"\n[job.a.protocol]\n{line}\n'
    with pytest.raises(ConfigError, match=f"line 4: .*{line.split()[0]}"):
        parse_config(text)
