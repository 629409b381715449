"""Launch files: what is understood of them, and what is refused with a sentence."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.errors import LaunchRefused, UsageError
from infrarsi.launch import parse_launch
from infrarsi.reading.shell import read_launch_file, starts_training

WHOLE = """\
#!/usr/bin/env bash
# Starts the training.
set -euo pipefail
cd "$(dirname "$0")"

export OMP_NUM_THREADS=2
NGPU=${NGPU:-2}
LR="1e-3"   # peak
ARGS=(
    --lr $LR        # as above
    --name "a b"
    --tag='$x'
)
ARGS+=(--steps 10)

exec torchrun --standalone --nproc-per-node "$NGPU" \\
    train.py "${ARGS[@]}" "$@"
"""


def launch(text: str):
    return read_launch_file("launch.sh", text)


def test_a_whole_launch_file_is_read_as_its_command():
    assert launch(WHOLE) == parse_launch(
        "OMP_NUM_THREADS=2 torchrun --nproc-per-node 2 train.py"
        " --lr 1e-3 --name 'a b' --tag='$x' --steps 10"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("python train.py", "python train.py"),
        ("A=1 B='x y' python -u train.py --z", "A=1 B='x y' python train.py --z"),
        ("A=1\nexport A\npython train.py", "A=1 python train.py"),
        ("A=1\npython train.py $A", "python train.py 1"),
        ("A=1\npython train.py --x=${A}2", "python train.py --x=12"),
        ('E="--a 1 --b 2"\npython train.py $E', "python train.py --a 1 --b 2"),
        ('E="--a 1"\npython train.py "$E"', "python train.py '--a 1'"),
        ('E=""\npython train.py $E ""', "python train.py ''"),
        ("python train.py ${N:-4} ${M-5} ${1:-6}", "python train.py 4 5 6"),
        ("N=2\npython train.py ${N:+--n $N}", "python train.py --n 2"),
        ('X=()\npython train.py ${X[@]} "${X[@]}" $@', "python train.py"),
        ("X=(a 'b c')\npython train.py --p\"${X[@]}\"q", "python train.py --pa 'b cq'"),
        ("python train.py \\\n  --a \\\n  1\n", "python train.py --a 1"),
        ("python train.py --a#b # c", "python train.py '--a#b'"),
        ("echo start; mkdir -p out && python train.py > out/log 2>&1", "python train.py"),
        (
            'DIR="$( cd "$( dirname "${BASH_SOURCE[0]}" )" &> /dev/null && pwd )"\n'
            "python $DIR/train.py",
            "python train.py",
        ),
        ("cd $(dirname $0)\r\npython train.py\r\n", "python train.py"),
        ("python train.py\nexit 0\npython other.py", "python train.py"),
        (
            "accelerate launch --num_processes 2 --mixed_precision bf16 train.py",
            "ACCELERATE_MIXED_PRECISION=bf16 torchrun --nproc-per-node 2 train.py",
        ),
        (
            "deepspeed --num_gpus=2 train.py --ds c.json",
            "torchrun --nproc-per-node 2 train.py --ds c.json",
        ),
        ("env A=1 python train.py", "A=1 python train.py"),
    ],
)
def test_what_the_shell_would_run_is_what_is_read(text: str, line: str):
    assert launch(text) == parse_launch(line)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "starts no"),
        ("echo python train.py", "starts no"),
        ("python a.py\npython b.py", "besides"),
        ("python prepare.py && python train.py", "besides"),
        ("docker run x\npython train.py", "besides"),
        ("python train.py | tee log", "`|`"),
        ("python train.py &\nwait", "`&`"),
        ("python train.py < data", "`<`"),
        ("(python train.py)", "`(`"),
        ("if true; then python train.py; fi", "`if`"),
        ("for s in 1 2; do python train.py --seed $s; done", "`for`"),
        ("run() { python train.py; }\nrun", "`(`"),
        ("python train.py --n $(nproc)", "$(nproc)"),
        ("python train.py --n `nproc`", "it uses `"),
        ("python train.py --n=`nproc`", "`nproc"),
        ("python train.py $((1 + 1))", "$((1 + 1))"),
        ("python train.py $DATA", "`$DATA`"),
        ("python train.py $1", "argument"),
        ("python train.py ${X:?say}", "`$X`"),
        ("python train.py ${#X}", "${#X}"),
        ("python train.py *.bin", "pattern"),
        ("X='*'\npython train.py $X", "pattern"),
        ("cd src\npython train.py", "`cd src`"),
        ("eval python train.py", "`eval`"),
        ('set -- --lr 1\npython train.py "$@"', "`set`"),
        ("python 'train.py", "not closed"),
        ("X=(a\npython train.py", "not closed"),
        ("python -m train", "`-m`"),
        ("bash other.sh", "`bash`"),
        ("source env.sh\npython train.py", "besides"),
    ],
)
def test_what_is_not_understood_is_refused_with_a_sentence(text: str, word: str):
    with pytest.raises(UsageError) as caught:
        launch(text)
    assert word in caught.value.what
    assert caught.value.what.startswith("launch.sh: ")
    assert caught.value.do
    assert not isinstance(caught.value, LaunchRefused)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("export LD_PRELOAD=./fast.so\npython train.py", "S407"),
        ("LD_PRELOAD=./fast.so\nexport LD_PRELOAD\npython train.py", "S407"),
        ("FLAGS='-I'\npython $FLAGS train.py", "S406"),
        ("exec env -i python train.py", "S406"),
        ("python -O train.py", "S415"),
        ("nice -n -5 python train.py", "E501"),
    ],
)
def test_what_would_disturb_the_measurement_keeps_its_code(text: str, code: str):
    with pytest.raises(LaunchRefused) as caught:
        launch(text)
    assert caught.value.code == code


def test_a_file_that_starts_no_python_is_told_apart():
    assert starts_training("#!/bin/sh\nexec .venv/bin/python3.11 train.py\n")
    assert not starts_training("docker compose up # python train.py\n")


pieces = st.sampled_from(
    [
        "python ",
        "train.py",
        "torchrun",
        " --a ",
        "\n",
        "\\\n",
        "'",
        '"',
        "$",
        "${",
        "}",
        "X",
        "=",
        "(",
        ")",
        "[@]",
        "$(",
        "`",
        ";",
        "&&",
        "|",
        ">",
        "#",
        " ",
        ":-",
        "exec ",
        "export ",
        "cd ",
        "é",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=14).map("".join))
def test_any_text_is_a_launch_or_refused(text: str):
    refusal: UsageError | None = None
    try:
        launch(text)
    except UsageError as error:
        refusal = error
    assert refusal is None or (refusal.what and refusal.do)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(0, 30))
def test_a_cut_launch_file_never_breaks_the_reader(at: int, length: int):
    cut = WHOLE[:at] + WHOLE[at + length :]
    refusal: UsageError | None = None
    script = ""
    try:
        script = launch(cut).script
    except UsageError as error:
        refusal = error
    assert script.endswith(".py") if refusal is None else refusal.do
