"""YAML, TOML and JSON files as carriers: the values, and the spans they have in those files."""

import pytest

from infrarsi.launch import parse_launch
from infrarsi.place import Place
from infrarsi.reading import MappingSources, Reading, read

YAML = """\
# what is trained
train:
  micro_batch: 4   # rows
  accumulation: 2
  lr: 1.0e-3
  steps: 100
"""
TOML = """\
[train]
micro_batch = 4 # rows
accumulation = 2
lr = 1e-3
steps = 1_00
"""
JSON = """\
{"train": {"micro_batch": 4, "accumulation": 2,
           "lr": 1e-3, "steps": 100}}
"""
FILES = {"conf/c.yaml": YAML, "conf/c.toml": TOML, "conf/c.json": JSON}
LOOP = """
def main(cfg):
    model = torch.nn.Linear(8, 8)
    opt = torch.optim.AdamW(model.parameters(), lr={train}{lr})
    for step in range({train}{steps}):
        for _ in range({train}{accumulation}):
            x = torch.randn({train}{micro_batch}, 8)
            loss = model(x).sum()
            loss.backward()
        opt.step()
"""
BY_KEY = {n: f'["{n}"]' for n in ("lr", "steps", "accumulation", "micro_batch")}
BY_ATTRIBUTE = {n: f".{n}" for n in BY_KEY}
KEYS = LOOP.format(train='cfg["train"]', **BY_KEY)
ATTRIBUTES = LOOP.format(train="cfg.train", **BY_ATTRIBUTE)
FLAT = LOOP.format(train="cfg", **BY_ATTRIBUTE)
FLAT_KEYS = LOOP.format(train="cfg", **BY_KEY)
FACTS = ("micro_batch", "accumulation", "lr", "updates")


def script(prelude: str, loop: str, start: str) -> str:
    return f"import torch\n{prelude}\n{loop}\n{start}\n"


def reading(text: str, launch: str = "python train.py", **files: str) -> Reading:
    return read(MappingSources({"train.py": text, **FILES, **files}), parse_launch(launch))


def values(found: Reading) -> tuple[object, ...]:
    return tuple(getattr(found.fact(name), "value", None) for name in FACTS)


def written(place: Place | None, texts: dict[str, str]) -> str:
    assert place is not None
    line = texts[place.file].splitlines()[place.line - 1]
    return line[place.column - 1 : place.end_column - 1]


@pytest.mark.parametrize(
    ("load", "file"),
    [
        ('import yaml\ncfg = yaml.safe_load(open("conf/c.yaml"))', "conf/c.yaml"),
        (
            'import yaml\nwith open("conf/c.yaml") as f:\n'
            "    cfg = yaml.load(f, Loader=yaml.FullLoader)",
            "conf/c.yaml",
        ),
        (
            "import os, yaml\nhere = os.path.dirname(os.path.abspath(__file__))\n"
            'cfg = yaml.safe_load(open(os.path.join(here, "conf", "c.yaml")).read())',
            "conf/c.yaml",
        ),
        (
            "from pathlib import Path\nimport yaml\n"
            'cfg = yaml.safe_load((Path(__file__).resolve().parent / "conf/c.yaml").read_text())',
            "conf/c.yaml",
        ),
        (
            'from ruamel.yaml import YAML\ncfg = YAML(typ="safe").load(open("conf/c.yaml"))',
            "conf/c.yaml",
        ),
        (
            'import json\nNAME = "c"\nwith open(f"conf/{NAME}.json") as f:\n    cfg = json.load(f)',
            "conf/c.json",
        ),
        (
            "import json, pathlib\n"
            'cfg = json.loads(pathlib.Path("conf", "c.json").read_text("utf-8"))',
            "conf/c.json",
        ),
        (
            'import tomllib\nwith open("conf/c.toml", "rb") as f:\n    cfg = tomllib.load(f)',
            "conf/c.toml",
        ),
        (
            "import tomllib\nfrom pathlib import Path\n"
            'cfg = tomllib.loads(Path("conf").joinpath("c.toml").read_text())',
            "conf/c.toml",
        ),
    ],
)
def test_a_loaded_file_gives_values_with_their_spans(load: str, file: str):
    found = reading(script(load, KEYS, "main(cfg)"))
    assert values(found) == (4, 2, 1e-3, 100)
    assert found.documents == (file,)
    expected = {"micro_batch": "4", "accumulation": "2"}
    for name, text in expected.items():
        binding = found.bindings[name]
        assert (binding.carrier, binding.file) == (file.rpartition(".")[2], file)
        assert binding.name == f"train.{name}"
        assert written(binding.place, FILES) == text
        fact = found.fact(name)
        assert fact is not None
        assert fact.place == binding.place
    knob = next(knob for knob in found.knobs if knob.name == "micro_batch")
    assert knob.choices == (1, 2, 4, 8)
    assert [(b.name, b.quotient_of) for b in knob.bindings] == [
        ("train.micro_batch", None),
        ("train.accumulation", 8),
    ]


LOAD = 'import yaml\nraw = yaml.safe_load(open("conf/c.yaml"))\n'
DATACLASSES = """\
from dataclasses import dataclass, field

@dataclass
class Train:
    micro_batch: int = 1
    accumulation: int = 1
    lr: float = 0.1
    steps: int = 7

@dataclass
class Config:
    train: Train = field(default_factory=Train)
"""


@pytest.mark.parametrize(
    ("wrap", "loop", "start"),
    [
        (f"{LOAD}from types import SimpleNamespace", FLAT, 'main(SimpleNamespace(**raw["train"]))'),
        (f"{LOAD}from argparse import Namespace", FLAT, 'main(Namespace(**raw["train"]))'),
        (f"{LOAD}from box import Box", ATTRIBUTES, "main(Box(raw))"),
        (f"{LOAD}from easydict import EasyDict as edict", ATTRIBUTES, "main(edict(raw))"),
        (f"{LOAD}from omegaconf import OmegaConf", ATTRIBUTES, "main(OmegaConf.create(raw))"),
        (
            'from omegaconf import OmegaConf\ncfg = OmegaConf.load("conf/c.yaml")',
            ATTRIBUTES,
            "main(cfg)",
        ),
        (f"{LOAD}{DATACLASSES}", FLAT, 'main(Train(**raw["train"]))'),
        (f"{LOAD}{DATACLASSES}", ATTRIBUTES, 'main(Config(train=Train(**raw["train"])))'),
        (f"{LOAD}{DATACLASSES}import dacite", ATTRIBUTES, "main(dacite.from_dict(Config, raw))"),
        (
            f"{LOAD}{DATACLASSES}cfg = Train()\nfor k, v in raw['train'].items():\n"
            "    if hasattr(cfg, k):\n        setattr(cfg, k, v)\n",
            FLAT,
            "main(cfg)",
        ),
        (
            f"{LOAD}class Config:\n    def __init__(self, d):\n        for k, v in d.items():\n"
            "            setattr(self, k, Config(v) if isinstance(v, dict) else v)\n",
            ATTRIBUTES,
            "main(Config(raw))",
        ),
        (
            f"{LOAD}class Config:\n    def __init__(self, **entries):\n"
            "        self.__dict__.update(entries)\n",
            FLAT,
            'main(Config(**raw["train"]))',
        ),
        (
            f"{LOAD}class Config(dict):\n    __getattr__ = dict.__getitem__\n",
            FLAT,
            'main(Config(raw["train"]))',
        ),
        (
            f"{LOAD}from types import SimpleNamespace\n"
            "def wrap(value):\n    if isinstance(value, dict):\n"
            "        return SimpleNamespace(**{k: wrap(v) for k, v in value.items()})\n"
            "    return value\n",
            ATTRIBUTES,
            "main(wrap(raw))",
        ),
        (f"{LOAD}cfg = {{'lr': 3.0, 'steps': 1, **raw['train']}}", FLAT_KEYS, "main(cfg)"),
        (f"{LOAD}cfg = {{'lr': 3.0}}\ncfg.update(raw['train'])", FLAT_KEYS, "main(cfg)"),
        (f"{LOAD}cfg = {{'lr': 3.0}} | raw['train']", FLAT_KEYS, "main(cfg)"),
        (f"{LOAD}cfg = dict(raw['train'], lr=2.0)\ncfg['lr'] = 1e-3", FLAT_KEYS, "main(cfg)"),
        (
            "import argparse, yaml\nparser = argparse.ArgumentParser()\n"
            'parser.add_argument("--config", default="conf/c.yaml")\n'
            'parser.add_argument("--lr", type=float, default=9.0)\n'
            "args = parser.parse_args()\n"
            "with open(args.config) as f:\n    raw = yaml.safe_load(f)\n"
            'vars(args).update(raw["train"])',
            FLAT,
            "main(args)",
        ),
        (
            "import argparse, yaml\nparser = argparse.ArgumentParser()\n"
            'parser.add_argument("--config", default="conf/c.yaml")\n'
            'parser.add_argument("--lr", type=float, default=9.0)\n'
            'parser.add_argument("--steps", type=int)\n'
            'parser.add_argument("--micro_batch", type=int)\n'
            'parser.add_argument("--accumulation", type=int)\n'
            "args, _ = parser.parse_known_args()\n"
            'parser.set_defaults(**yaml.safe_load(open(args.config))["train"])\n'
            "args = parser.parse_args()",
            FLAT,
            "main(args)",
        ),
    ],
)
def test_wrappers_and_joined_mappings_keep_the_values(wrap: str, loop: str, start: str):
    found = reading(script(wrap, loop, start))
    assert values(found) == (4, 2, 1e-3, 100)
    assert found.bindings["micro_batch"].carrier == "yaml"


def test_a_key_that_is_missing_takes_the_default_that_is_written():
    loop = FLAT_KEYS.replace('cfg["micro_batch"]', 'cfg.get("rows", 16)').replace(
        'cfg["accumulation"]', 'getattr(args, "accumulation", 3)'
    )
    start = "import types\nargs = types.SimpleNamespace()\nmain(raw['train'])"
    found = reading(script(LOAD, loop, start))
    assert values(found) == (16, 3, 1e-3, 100)
    binding = found.bindings["micro_batch"]
    assert (binding.carrier, binding.file) == ("constant", "train.py")


def test_the_file_may_be_named_on_the_launch_line():
    load = (
        "import argparse, yaml\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--config", default="conf/other.yaml")\n'
        "cfg = yaml.safe_load(open(parser.parse_args().config))"
    )
    text = script(load, KEYS, "main(cfg)")
    assert values(reading(text)) == (None, None, None, None)
    found = reading(text, "python train.py --config conf/c.yaml")
    assert values(found) == (4, 2, 1e-3, 100)
    by_word = text.replace("parser.parse_args().config", "sys.argv[1]").replace(
        "argparse", "sys", 1
    )
    by_word = by_word.replace("parser", "_").replace("_ = argparse.ArgumentParser()\n", "")
    assert values(reading(by_word, "python train.py conf/c.yaml")) == (4, 2, 1e-3, 100)


def test_what_may_or_may_not_be_set_is_unknown():
    load = f"{LOAD}import os\ncfg = dict(raw['train'])\nif os.path.exists('x.flag'):\n"
    found = reading(script(f"{load}    cfg['lr'] = 5.0", FLAT_KEYS, "main(cfg)"))
    assert values(found) == (4, 2, None, 100)
    certain = load.replace("os.path.exists('x.flag')", "raw['train']['steps'] > 50")
    found = reading(script(f"{certain}    cfg['lr'] = 5.0", FLAT_KEYS, "main(cfg)"))
    assert values(found) == (4, 2, 5.0, 100)


def test_what_is_put_in_from_something_unknown_makes_the_mapping_unknown():
    load = f"{LOAD}import requests\ncfg = dict(raw['train'])\ncfg.update(requests.get('x').json())"
    assert values(reading(script(load, FLAT_KEYS, "main(cfg)"))) == (None, None, None, None)


def test_anchors_and_merge_keys_of_yaml_are_followed():
    text = "base: &base\n  lr: 1.0e-3\n  steps: 7\ntrain:\n  <<: *base\n  steps: 100\n"
    text += "  micro_batch: 4\n  accumulation: 2\n"
    found = reading(script(LOAD, KEYS, "main(raw)"), **{"conf/c.yaml": text})
    assert values(found) == (4, 2, 1e-3, 100)


def test_dotted_overrides_written_by_hand_win_over_the_file():
    load = (
        f"{LOAD}import sys\nfor word in sys.argv[1:]:\n    name, _, text = word.partition('=')\n"
        "    *parents, leaf = name.split('.')\n    node = raw\n"
        "    for parent in parents:\n        node = node[parent]\n"
        "    node[leaf] = yaml.safe_load(text)\n"
    )
    text = script(load, KEYS, "main(raw)")
    assert values(reading(text, "python train.py train.micro_batch=8")) == (8, 2, 1e-3, 100)


LOADERS = {
    "conf/c.yaml": 'import yaml\ncfg = yaml.safe_load(open("conf/c.yaml"))',
    "conf/c.toml": 'import tomllib\ncfg = tomllib.load(open("conf/c.toml", "rb"))',
    "conf/c.json": 'import json\ncfg = json.load(open("conf/c.json"))',
}
HALF_TYPED = [
    ("conf/c.yaml", YAML, "  lr: 1.0e-3", "  lr: [1.0e-3"),
    ("conf/c.yaml", YAML, "  lr: 1.0e-3", '  lr: "1.0e-3'),
    ("conf/c.yaml", YAML, "  lr: 1.0e-3", "  lr"),
    ("conf/c.yaml", YAML, "  lr: 1.0e-3", "  lr: {"),
    ("conf/c.toml", TOML, "lr = 1e-3", "lr = "),
    ("conf/c.toml", TOML, "lr = 1e-3", "lr = [1e-3"),
    ("conf/c.toml", TOML, "lr = 1e-3", 'lr = "1e-3'),
    ("conf/c.toml", TOML, "lr = 1e-3", "lr"),
    ("conf/c.json", JSON, '"lr": 1e-3,', '"lr": ,'),
    ("conf/c.json", JSON, '"lr": 1e-3,', '"lr"'),
    ("conf/c.json", JSON, '"lr": 1e-3,', '"lr,'),
    ("conf/c.json", JSON, '"lr": 1e-3,', '"lr": 1e-,'),
]


@pytest.mark.parametrize(("file", "text", "old", "new"), HALF_TYPED)
def test_a_half_typed_line_costs_only_its_own_value(file: str, text: str, old: str, new: str):
    assert text.count(old) == 1
    broken = text.replace(old, new)
    found = reading(script(LOADERS[file], KEYS, "main(cfg)"), **{file: broken})
    *others, lr, steps = values(found)
    assert (others, lr) == ([4, 2], None)
    assert steps == 100 or ('"lr' in new and ":" not in new)
    assert {p.place.file for p in found.problems if p.place} == {file}


@pytest.mark.parametrize(("file", "text", "old", "new"), HALF_TYPED)
def test_a_half_typed_value_takes_no_default(file: str, text: str, old: str, new: str):
    if ":" not in new and "=" not in new:
        return
    loop = KEYS.replace('cfg["train"]["lr"]', 'cfg["train"].get("lr", 9.0)')
    broken = text.replace(old, new)
    found = reading(script(LOADERS[file], loop, "main(cfg)"), **{file: broken})
    lr = found.fact("lr")
    assert lr is not None
    assert lr.value is None
