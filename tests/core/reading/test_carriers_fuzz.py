"""No mutation of a script, its configuration files or its launch line makes reading raise."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infrarsi.launch import Launch
from infrarsi.reading import MappingSources, Reading, read

SCRIPT = """
import argparse, json, os, sys, tomllib
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import click, fire, hydra, torch, tyro, typer, yaml
from omegaconf import OmegaConf
from transformers import HfArgumentParser, TrainingArguments


@dataclass
class Train:
    rows: int = 4
    lr: float = field(default=1e-3)
    inner: "Train" = field(default_factory=lambda: Train())


class Loop(Knot):
    x: int = 1


class Knot(Loop):
    y: int = 2


class Config(dict):
    def __init__(self, d, **extra):
        self.__dict__.update(extra)
        for k, v in d.items():
            setattr(self, k, Config(v) if isinstance(v, dict) else v)

    @classmethod
    def load(cls, path):
        return cls(**yaml.safe_load(Path(path).read_text()))


def wrap(value):
    if isinstance(value, dict):
        return SimpleNamespace(**{k: wrap(v) for k, v in value.items()})
    return value


parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
parser.add_argument("--config", default="c.yaml")
parser.add_argument("--train.rows", type=int, default=os.environ.get("ROWS", 2))
args, rest = parser.parse_known_args()
with open(os.path.join(os.path.dirname(__file__), args.config)) as file:
    cfg = yaml.load(file, yaml.SafeLoader)
cfg.update(tomllib.load(open("c.toml", "rb")), extra=json.load(open("c.json")))
parser.set_defaults(**cfg["train"])
args = parser.parse_args()
vars(args).update({**cfg, **OmegaConf.from_cli()})
for word in sys.argv[1:]:
    name, _, text = word.partition("=")
    node = cfg
    node[name] = text
ns = wrap(cfg)
both = OmegaConf.merge(OmegaConf.structured(Train), OmegaConf.load("c.yaml"), {"rows": 1} | cfg)
train, hf = HfArgumentParser((Train, TrainingArguments)).parse_args_into_dataclasses()
made = Train(**cfg["train"])
made.rows = both.train.rows


@click.command()
@click.option("--rows", "-r", default=4)
def by_click(rows, **kwargs):
    main(rows, kwargs)


@hydra.main(config_path="conf", config_name="config", version_base=None)
def by_hydra(cfg):
    main(cfg.train.rows, **cfg)


def main(rows: int = ns.train.rows, accum=getattr(args, "accum", 3), *more, **named):
    model = torch.nn.Linear(8, 8)
    opt = torch.optim.AdamW(model.parameters(), lr=tyro.cli(Train).lr, **named)
    for _ in range(accum):
        x = torch.randn(rows, Config.load("c.yaml").train.seq)
        loss = model(x).sum()
        loss.backward()
    opt.step()


fire.Fire(main)
tyro.cli(Knot)
typer.run(main)
by_click()
by_hydra()
"""
FILES = {
    "train.py": SCRIPT,
    "c.yaml": "train: &t\n  rows: 4\n  seq: 8\n  lr: 1e-3\n"
    "copy:\n  <<: *t\n  accum: ${train.rows}\n",
    "c.toml": "accum = 2\n[a.b]\nc = [1, 2]\n",
    "c.json": '{"a": {"b": [1, 2]}}\n',
    "args.txt": "--train.rows=8\n",
    "conf/config.yaml": "defaults:\n  - train: x\n  - _self_\nn: 1\n",
    "conf/train/x.yaml": "# @package _global_.train\ndefaults: [x, config]\nrows: ${n}\n",
}
WORDS = [
    "train.rows=2",
    "--rows",
    "--rows=8",
    "3",
    "@args.txt",
    "--config=c.yaml",
    "--config",
    "c.json",
    "train=x",
    "~n",
    "+a.b.c=[1,{x: 2}]",
    "--inner.inner.rows=5",
    "--no-rows",
    "=",
    "--",
    "-m",
    "é=\ud800",
]
mutations = st.lists(
    st.tuples(
        st.sampled_from(sorted(FILES)),
        st.sampled_from(["cut", "delete", "insert", "none"]),
        st.floats(0, 1),
        st.integers(1, 40),
        st.text("()[]{}'\"\\:=,.*& \n\tcfgrowsx012é\0", max_size=6),
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutations, st.lists(st.sampled_from(WORDS), max_size=4))
def test_no_mutation_makes_reading_raise(
    steps: list[tuple[str, str, float, int, str]], words: list[str]
):
    texts = dict(FILES)
    for name, kind, where, length, insert in steps:
        text = texts[name]
        at = round(where * len(text))
        match kind:
            case "cut":
                texts[name] = text[:at]
            case "delete":
                texts[name] = text[:at] + text[at + length :]
            case "insert":
                texts[name] = text[:at] + insert + text[at:]
            case _:
                del texts[name]
                texts.setdefault("train.py", SCRIPT)
                texts.setdefault(name, "")
    launch = Launch(script="train.py", args=tuple(w for w in words if w.isascii()))
    found = read(MappingSources(texts), launch, 2)
    assert Reading.model_validate_json(found.model_dump_json()) == found
    for binding in found.bindings.values():
        if binding.place is not None:
            lines = texts[binding.place.file].count("\n") + 1
            assert 1 <= binding.place.line <= binding.place.end_line <= lines


def test_the_script_as_it_stands_is_read_without_what_is_uncertain():
    found = read(MappingSources(FILES), Launch(script="train.py"), 2)
    assert set(found.documents) >= {"c.yaml", "c.toml", "c.json"}
    assert [fact.name for fact in found.facts if fact.value is not None]
