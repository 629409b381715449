"""Command lines that are made from functions and dataclasses, and Hydra's composition."""

import pytest

from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, Reading, read

LOOP = """
    model = torch.nn.Linear(8, 8)
    opt = torch.optim.AdamW(model.parameters(), lr={lr})
    for step in range({steps}):
        for _ in range({accum}):
            x = torch.randn({rows}, 8)
            loss = model(x).sum()
            loss.backward()
        opt.step()
"""
NAMES = ("rows", "accum", "lr", "steps")
PLAIN = LOOP.format(**{name: name for name in NAMES})
CFG = LOOP.format(**{name: f"cfg.{name}" for name in NAMES})
TRAIN = LOOP.format(**{name: f"cfg.train.{name}" for name in NAMES})
FACTS = ("micro_batch", "accumulation", "lr", "updates")


def reading(text: str, args: str = "", files: dict[str, str] | None = None) -> Reading:
    sources = MappingSources({"train.py": f"import torch\n{text}", **(files or {})})
    return read(sources, parse_launch(f"python train.py {args}"))


def values(found: Reading) -> tuple[object, ...]:
    return tuple(getattr(found.fact(name), "value", None) for name in FACTS)


CLICK = f"""
import click
@click.command()
@click.option("--rows", "-r", default=4, show_default=True)
@click.option("--accum-steps", "accum", type=int, default=2)
@click.option("--lr", type=click.FLOAT, default=1e-3, envvar="LR")
@click.option("--num-steps", "-n", "steps", required=True, type=int)
def main(rows, accum, lr, steps):{PLAIN}
if __name__ == "__main__":
    main()
"""
TYPER = f"""
import typer
from typing import Annotated
app = typer.Typer()
@app.command()
def main(
    rows: int = typer.Option(4, "--rows", "-r"),
    accum: Annotated[int, typer.Option("--accum-steps")] = 2,
    lr: float = 1e-3,
    steps: int = typer.Option(..., "--num-steps", "-n"),
):{PLAIN}
app()
"""
FIRE = f"""
import fire
def main(rows=4, accum=2, lr=1e-3, steps=7):{PLAIN}
if __name__ == "__main__":
    fire.Fire(main)
"""
JSONARGPARSE = f"""
from jsonargparse import CLI
def main(rows: int = 4, accum: int = 2, lr: float = 1e-3, steps: int = 7):{PLAIN}
if __name__ == "__main__":
    CLI(main)
"""
DATACLASS = """
from dataclasses import dataclass, field
@dataclass
class Train:
    rows: int = 4
    accum: int = 2
    lr: float = 1e-3
    steps: int = 7
    verbose: bool = False
@dataclass
class Config:
    name: str = "x"
    train: Train = field(default_factory=Train)
"""
TYRO = f"{DATACLASS}\nimport tyro\ndef main(cfg: Config):{TRAIN}\nmain(tyro.cli(Config))\n"
SIMPLE = f"{DATACLASS}\nimport draccus\n@draccus.wrap()\ndef main(cfg: Config):{TRAIN}\nmain()\n"
LIGHTNING = f"{DATACLASS}\nfrom jsonargparse import auto_cli\ndef main(cfg: Config):{TRAIN}\n"
LIGHTNING += "auto_cli(main)\n"
PARSER = """
from jsonargparse import ArgumentParser
parser = ArgumentParser()
parser.add_argument("--config", action="config")
parser.add_argument("--train.rows", type=int, default=4)
parser.add_argument("--train.accum", type=int, default=2)
parser.add_argument("--train.lr", type=float, default=1e-3)
parser.add_argument("--train.steps", type=int, default=7)
"""
PARSER += f"def main(cfg):{TRAIN}\nmain(parser.parse_args())\n"
HF = f"""{DATACLASS}
from transformers import HfArgumentParser
def main(cfg):{CFG}
parser = HfArgumentParser((Config, Train))
config, train = parser.parse_args_into_dataclasses()
main(train)
"""
ENV = f"""
import os
rows = int(os.environ.get("ROWS", 4))
accum = int(os.getenv("ACCUM", "2"))
lr = float(os.environ.get("LR", 1e-3))
steps = int(os.environ.get("STEPS", default=7))
def main():{PLAIN}
main()
"""


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        (CLICK, "--num-steps 9", (4, 2, 1e-3, 9)),
        (CLICK, "-r 8 --accum-steps=1 --lr 0.5 -n 9", (8, 1, 0.5, 9)),
        (TYPER, "--num-steps 9", (4, 2, 1e-3, 9)),
        (TYPER, "-r 8 --accum-steps=1 --lr 0.5 -n 9", (8, 1, 0.5, 9)),
        (FIRE, "", (4, 2, 1e-3, 7)),
        (FIRE, "--rows=8 --lr 0.5", (8, 2, 0.5, 7)),
        (FIRE, "8 1 --steps=9", (8, 1, 1e-3, 9)),
        (JSONARGPARSE, "--rows 8 --lr=0.5", (8, 2, 0.5, 7)),
        (TYRO, "", (4, 2, 1e-3, 7)),
        (TYRO, "--train.rows 8 --train.verbose --train.lr=0.5 --name y", (8, 2, 0.5, 7)),
        (SIMPLE, "--train.rows=8", (8, 2, 1e-3, 7)),
        (SIMPLE, "--config_path c.yaml --train.rows=8", (8, 3, 1e-3, 7)),
        (LIGHTNING, "--cfg.train.rows 8", (8, 2, 1e-3, 7)),
        (PARSER, "", (4, 2, 1e-3, 7)),
        (PARSER, "--train.rows 8 --train.lr=0.5", (8, 2, 0.5, 7)),
        (PARSER, "--config c.yaml --train.rows 8", (8, 3, 1e-3, 7)),
        (HF, "--rows 8 --lr 0.5 --name y", (8, 2, 0.5, 7)),
        (ENV, "", (4, 2, 1e-3, 7)),
    ],
)
def test_a_parameter_is_what_its_flag_says_else_its_default(
    text: str, args: str, expected: tuple[object, ...]
):
    found = reading(text, args, {"c.yaml": "train:\n  accum: 3\n  rows: 1\n"})
    assert values(found) == expected


@pytest.mark.parametrize("text", [CLICK, TYPER, FIRE, JSONARGPARSE, TYRO, HF])
def test_what_the_launch_line_gives_is_bound_there_and_defaults_in_the_code(text: str):
    flag = "--train.rows" if text is TYRO else "--rows"
    steps = "--num-steps 9" if text in (CLICK, TYPER) else ""
    given = reading(text, f"{flag} 8 {steps}").bindings["micro_batch"]
    assert (given.carrier, given.name) == ("argument", flag)
    default = reading(text, steps).bindings["micro_batch"]
    assert default.carrier in ("constant", "argument_default")
    assert default.place is not None
    line = f"import torch\n{text}".splitlines()[default.place.line - 1]
    assert line[default.place.column - 1 : default.place.end_column - 1] == "4"


def test_an_environment_variable_is_bound_to_the_launch_line():
    sources = MappingSources({"train.py": f"import torch\n{ENV}"})
    found = read(sources, parse_launch("ROWS=8 ACCUM=4 python train.py"))
    assert values(found) == (8, 4, 1e-3, 7)
    assert (found.bindings["micro_batch"].carrier, found.bindings["micro_batch"].name) == (
        "environment",
        "ROWS",
    )
    knob = next(knob for knob in found.knobs if knob.name == "micro_batch")
    assert knob.choices == (1, 2, 4, 8, 16, 32)


def test_arguments_may_stand_in_a_file_of_their_own():
    text = (
        "import argparse\nparser = argparse.ArgumentParser(fromfile_prefix_chars='@')\n"
        + "".join(f"parser.add_argument('--{n}', type=float)\n" for n in ("lr",))
        + "".join(f"parser.add_argument('--{n}', type=int)\n" for n in ("rows", "accum", "steps"))
        + f"def main(cfg):{CFG}\nmain(parser.parse_args())\n"
    )
    files = {"args.txt": "--rows=4\n--accum\n2\n--lr=1e-3\n--steps=7\n"}
    assert values(reading(text, "@args.txt", files)) == (4, 2, 1e-3, 7)
    assert values(reading(text, "@args.txt --rows 8", files)) == (8, 2, 1e-3, 7)


ARGUMENTS_FILE = f"""{DATACLASS}
import os, sys
from transformers import HfArgumentParser
def main(cfg):{CFG}
parser = HfArgumentParser((Config, Train))
if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
    config, train = parser.parse_json_file(json_file=os.path.abspath(sys.argv[1]))
else:
    config, train = parser.parse_args_into_dataclasses()
main(train)
"""


def test_dataclasses_may_be_given_by_one_file():
    files = {"a.json": '{"rows": 8, "lr": 0.5}'}
    found = reading(ARGUMENTS_FILE, "a.json", files)
    assert values(found) == (8, 2, 0.5, 7)
    assert found.bindings["micro_batch"].carrier == "json"
    assert values(reading(ARGUMENTS_FILE, "--rows 16")) == (16, 2, 1e-3, 7)


HYDRA = f"""
import hydra
from omegaconf import DictConfig
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg: DictConfig) -> None:{TRAIN}
if __name__ == "__main__":
    main()
"""
CONF = {
    "conf/config.yaml": "defaults:\n  - train: base\n  - _self_\n"
    "train:\n  steps: ${total}\ntotal: 7\n",
    "conf/train/base.yaml": "rows: 4\naccum: 2\nlr: 1e-3\nsteps: 1\n",
    "conf/train/big.yaml": "defaults:\n  - base\nrows: 32\n",
    "conf/fast.yaml": "defaults: [config]\ntrain: {lr: 0.5}\n",
}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("", (4, 2, 1e-3, 7)),
        ("train.rows=8 train.lr=5e-1", (8, 2, 0.5, 7)),
        ("total=9", (4, 2, 1e-3, 9)),
        ("train=big", (32, 2, 1e-3, 7)),
        ("train=big train.rows=16 hydra.run.dir=.", (16, 2, 1e-3, 7)),
        ("--config-name fast", (4, 2, 0.5, 7)),
        ("++train.rows=2", (2, 2, 1e-3, 7)),
        ("-m train.rows=1,2", (None, None, None, None)),
    ],
)
def test_hydra_composes_defaults_and_overrides(args: str, expected: tuple[object, ...]):
    found = reading(HYDRA, args, CONF)
    assert values(found) == expected


def test_a_hydra_value_is_bound_where_it_is_written():
    found = reading(HYDRA, "", CONF)
    binding = found.bindings["micro_batch"]
    assert (binding.carrier, binding.file, binding.name) == ("yaml", "conf/train/base.yaml", "rows")
    assert set(found.documents) == {"conf/config.yaml", "conf/train/base.yaml"}
    given = reading(HYDRA, "train.rows=8", CONF).bindings["micro_batch"]
    assert (given.carrier, given.name) == ("argument", "train.rows")


def test_omegaconf_joins_a_file_a_dataclass_and_the_command_line():
    text = f"""{DATACLASS}
from omegaconf import OmegaConf
def main(cfg):{TRAIN}
base = OmegaConf.structured(Config)
main(OmegaConf.merge(base, OmegaConf.load("c.yaml"), OmegaConf.from_cli()))
"""
    files = {"c.yaml": "train:\n  accum: 3\n  lr: 2e-1\n"}
    assert values(reading(text, "train.rows=8", files)) == (8, 3, 0.2, 7)


LIBRARY = """
import os, sys
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
parser = HfArgumentParser(TrainingArguments)
if sys.argv[-1].endswith(".json"):
    (training,) = parser.parse_json_file(os.path.abspath(sys.argv[1]))
else:
    training = parser.parse_args_into_dataclasses()[0]
model = AutoModelForCausalLM.from_pretrained("gpt2")
Trainer(model=model, args=training, train_dataset=None).train()
"""


@pytest.mark.parametrize(
    ("args", "carrier"),
    [
        (
            "--per_device_train_batch_size 4 --gradient_accumulation_steps=2"
            " --learning_rate 1e-4 --max_steps 50",
            "argument",
        ),
        ("a.json", "json"),
    ],
)
def test_a_librarys_arguments_are_read_from_flags_or_a_file(args: str, carrier: str):
    settings = '"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2'
    files = {"a.json": f'{{{settings}, "learning_rate": 1e-4, "max_steps": 50}}\n'}
    found = reading(LIBRARY, args, files)
    assert values(found) == (4, 2, 1e-4, 50)
    assert found.bindings["micro_batch"].carrier == carrier
