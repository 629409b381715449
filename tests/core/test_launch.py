import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrarsi.errors import LaunchRefused, UsageError
from infrarsi.launch import Launch, named_interpreter, parse_launch, render_launch

printable = st.text(st.characters(codec="utf-8", exclude_characters="\n\0\r"), max_size=12)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
folders = st.lists(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\n\0\r/"), min_size=1, max_size=6
    ).filter(lambda part: part not in {".", ".."}),
    min_size=1,
    max_size=3,
)
launches = st.builds(
    lambda launcher, n, parts, args, env: Launch(
        launcher=launcher,
        n_processes=n if launcher == "torchrun" else 1,
        script="/".join(parts) + ".py",
        args=tuple(args),
        env=env,
    ),
    st.sampled_from(["python", "torchrun"]),
    st.integers(1, 64),
    folders,
    st.lists(printable, max_size=4),
    st.dictionaries(names, printable, max_size=3),
)


@given(launches)
def test_a_rendered_launch_is_read_back_unchanged(launch: Launch):
    assert parse_launch(render_launch(launch)) == launch


@given(printable)
def test_any_line_is_parsed_or_refused_with_two_sentences(line: str):
    refusal: UsageError | None = None
    try:
        parse_launch(line)
    except UsageError as error:
        refusal = error
    assert refusal is None or (refusal.what and refusal.do)


def test_python_with_variables_and_arguments():
    launch = parse_launch("OMP_NUM_THREADS=2 NAME='a b' python -u ./train.py --lr 1e-3 'x y'")
    assert launch == Launch(
        script="train.py",
        args=("--lr", "1e-3", "x y"),
        env={"OMP_NUM_THREADS": "2", "NAME": "a b"},
    )


@pytest.mark.parametrize(
    "line",
    [
        "torchrun --nproc-per-node 2 train.py --x",
        "torchrun --nproc_per_node=2 train.py --x",
        "torchrun --standalone --nnodes=1 --nproc-per-node=2 train.py --x",
        "torchrun --nproc-per-node 2 --master_port 29501 train.py --x",
        "python -m torch.distributed.run --nproc-per-node 2 train.py --x",
        "python3 -u -m torch.distributed.run --nproc-per-node=2 \\\n  train.py --x",
        "  torchrun --nproc-per-node 2 'train.py' \"--x\"  \n",
    ],
)
def test_spellings_of_torchrun(line: str):
    expected = Launch(launcher="torchrun", n_processes=2, script="train.py", args=("--x",))
    assert parse_launch(line) == expected


def test_a_path_with_spaces_and_quotes():
    launch = parse_launch("""python "my jobs/it's/train.py" --name 'say "hi"'""")
    assert launch.script == "my jobs/it's/train.py"
    assert launch.args == ("--name", 'say "hi"')


def test_env_before_the_launcher_is_a_variable():
    assert parse_launch("env A=1 python train.py").env == {"A": "1"}
    assert parse_launch("B=2 env A=1 python train.py").env == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("", "no command"),
        ("A=1", "no command"),
        ("python", "no script"),
        ("torchrun --nproc-per-node 2", "no script"),
        ("python train.py | tee log", "`|`"),
        ("cd x && python train.py", "`&`"),
        ("python train.py --n $(nproc)", "`$`"),
        ('python train.py --n "$N"', "`$`"),
        ("python train.py --n `nproc`", "```"),
        ("python train.py > log", "`>`"),
        ("python train.py\npython eval.py", "line break"),
        ("python ~/train.py", "`~`"),
        ("python *.py", "`*`"),
        ("python 'train.py", "words"),
        ("python -S train.py", "`-S`"),
        ("python -I train.py", "`-I`"),
        ("python -Eu train.py", "`-Eu`"),
        ("python -O train.py", "`-O`"),
        ("python -c 'print(1)'", "`-c`"),
        ("python -m pkg.train", "`-m`"),
        ("env -i python train.py", "`env -i`"),
        ("accelerate launch train.py", "--num_processes"),
        ("accelerate launch --num_processes 2 --use_fsdp x train.py", "`--use_fsdp`"),
        ("accelerate launch --num_processes 2 --num_machines 2 train.py", "more than one node"),
        ("accelerate test", "`accelerate`"),
        ("deepspeed train.py", "--num_gpus"),
        ("deepspeed --include host1:0,1 train.py", "more than one node"),
        ("nice -n 5 python train.py", "`nice`"),
        ("bash run.sh", "`bash`"),
        ("./train.py", "`train.py`"),
        ("torchrun --nproc-per-node gpu train.py", "gpu"),
        ("torchrun --nproc-per-node 0 train.py", "0"),
        ("torchrun --nproc-per-node", "no value"),
        ("torchrun --nnodes 2 --nproc-per-node 2 train.py", "more than one node"),
        ("torchrun --module pkg.train", "`--module`"),
        ("python ../train.py", "outside"),
        ("python /srv/train.py", "outside"),
        ("python train.sh", "not a Python file"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(line: str, word: str):
    with pytest.raises(UsageError) as caught:
        parse_launch(line)
    assert word in caught.value.what
    assert caught.value.do
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("python -S train.py", "S406"),
        ("python -I train.py", "S406"),
        ("python -uE train.py", "S406"),
        ("env -i python train.py", "S406"),
        ("env -u PYTHONPATH python train.py", "S406"),
        ("PYTHONNOUSERSITE=1 python train.py", "S406"),
        ("PYTHONSTARTUP=x.py python train.py", "S406"),
        ("LD_PRELOAD=./fast.so torchrun --nproc-per-node 2 train.py", "S407"),
        ("env LD_AUDIT=./x.so python train.py", "S407"),
        ("python -O train.py", "S415"),
        ("PYTHONOPTIMIZE=1 python train.py", "S415"),
        ("taskset -c 0-3 python train.py", "E501"),
    ],
)
def test_what_would_disturb_the_measurement_is_refused_with_its_code(line: str, code: str):
    with pytest.raises(LaunchRefused) as caught:
        parse_launch(line)
    assert caught.value.code == code
    assert caught.value.do


@pytest.mark.parametrize(
    ("line", "same_as"),
    [
        (
            "accelerate launch --num_processes 2 --mixed_precision bf16"
            " --gradient-accumulation-steps=4 --main_process_port 1 train.py --x",
            "ACCELERATE_MIXED_PRECISION=bf16 ACCELERATE_GRADIENT_ACCUMULATION_STEPS=4"
            " torchrun --nproc-per-node 2 train.py --x",
        ),
        (
            "A=1 accelerate launch --cpu --num_processes=1 train.py",
            "A=1 ACCELERATE_USE_CPU=True python train.py",
        ),
        ("deepspeed --num_gpus 4 train.py --x", "torchrun --nproc-per-node 4 train.py --x"),
        (
            "deepspeed --include localhost:0,2 --master_port 7 train.py",
            "torchrun --nproc-per-node 2 train.py",
        ),
        ("MASTER_PORT=29501 PYTHONPATH=src python train.py", "PYTHONPATH=src python train.py"),
    ],
)
def test_other_launchers_are_read_as_the_line_they_amount_to(line: str, same_as: str):
    assert parse_launch(line) == parse_launch(same_as)


def test_shell_characters_in_single_quotes_are_plain():
    assert parse_launch("python train.py '$x|*' \"a|b\"").args == ("$x|*", "a|b")


def test_the_interpreter_is_named_only_by_a_path():
    assert named_interpreter("A=1 .venv/bin/python train.py") == ".venv/bin/python"
    assert named_interpreter("python train.py") is None
    assert named_interpreter("bin/torchrun train.py") is None
