"""A job made smaller is the same job with fewer rows, shorter rows and fewer layers."""

from pathlib import Path

import pytest

from infrarsi.edits import apply_edits
from infrarsi.knobs import Candidate, Space
from infrarsi.launch import Launch, parse_launch
from infrarsi.patches import Materialised, Shrunk, materialise, overlay, patch_knobs, shrink
from infrarsi.patches.depth import depth_bindings
from infrarsi.reading import MappingSources, follow, read
from infrarsi.reading.sources import Sources

ROOT = Path(__file__).parents[3]
EXAMPLES = {
    "dense_gpt": ROOT / "examples" / "dense_gpt",
    "moe_gpt": ROOT / "examples" / "moe_gpt",
    "tiny_job": ROOT / "tests" / "fixtures" / "tiny_job",
}
LAUNCH = Launch(script="train.py")


def sources_of(name: str) -> MappingSources:
    folder = EXAMPLES[name]
    return MappingSources({p.name: p.read_text() for p in folder.glob("*.py")})


def made(sources: Sources, launch: Launch = LAUNCH) -> Shrunk:
    small = shrink(read(sources, launch), sources, launch)
    assert small is not None
    return small


def facts(sources: Sources, small: Shrunk) -> dict[str, object]:
    reading = read(overlay(sources, small.edits), small.launch)
    return {fact.name: fact.value for fact in reading.facts}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_becomes_smaller_and_stays_the_same_job(name: str) -> None:
    sources = sources_of(name)
    small = made(sources)
    before = {fact.name: fact.value for fact in read(sources, LAUNCH).facts}
    after = facts(sources, small)
    assert {"seq_len", "global_batch"} <= small.smaller.keys()
    for fact in ("seq_len", "global_batch"):
        assert after[fact] == small.smaller[fact]
        assert 0 < int(str(after[fact])) < int(str(before[fact]))
    for fact in ("micro_batch", "world_size", "optimizer", "loss", "precision"):
        assert after[fact] == before[fact]


def test_a_candidate_keeps_its_own_changes() -> None:
    sources = sources_of("dense_gpt")
    patches, _ = patch_knobs(sources, LAUNCH)
    space = Space(knobs=(*read(sources, LAUNCH).knobs, *patches))
    candidate = Candidate(setting={"micro_batch": 2, "sdpa": True})
    built = materialise(candidate, space, sources, LAUNCH)
    assert isinstance(built, Materialised)
    changed = overlay(sources, built.edits)
    small = shrink(follow(changed, built.launch).reading, changed, built.launch)
    assert small is not None
    text = overlay(changed, small.edits).text("train.py") or ""
    assert "scaled_dot_product_attention" in text
    assert "MICRO_BATCH = 2\n" in text
    assert "GLOBAL_BATCH = 4\n" in text
    assert "SEQ_LEN = 128\n" in text
    assert small.launch == built.launch


def test_two_ranks_and_two_micro_steps_remain() -> None:
    launch = parse_launch("torchrun --standalone --nproc-per-node 2 train.py")
    sources = MappingSources(
        {
            "train.py": (sources_of("dense_gpt").text("train.py") or "").replace(
                "GLOBAL_BATCH = 4", "GLOBAL_BATCH = 32"
            )
        }
    )
    assert made(sources, launch).smaller["global_batch"] == 4


@pytest.mark.parametrize(
    ("tokens", "short"),
    [(4096, 512), (1024, 128), (512, 128), (256, 128), (128, None), (64, 16), (1000, 125)],
)
def test_whole_blocks_of_tokens_stay_whole_blocks(tokens: int, short: int | None) -> None:
    text = (sources_of("tiny_job").text("train.py") or "").replace(
        "SEQ_LEN = 64", f"SEQ_LEN = {tokens}"
    )
    assert made(MappingSources({"train.py": text})).smaller.get("seq_len") == short


def test_what_is_small_already_is_left_alone() -> None:
    text = (sources_of("tiny_job").text("train.py") or "").replace(
        "GLOBAL_BATCH = 32", "GLOBAL_BATCH = 2"
    )
    sources = MappingSources({"train.py": text.replace("SEQ_LEN = 64", "SEQ_LEN = 24")})
    assert shrink(read(sources, LAUNCH), sources, LAUNCH) is None


def test_a_job_nothing_is_read_of_is_not_made_smaller() -> None:
    sources = MappingSources({"train.py": "import torch\n"})
    assert shrink(read(sources, LAUNCH), sources, LAUNCH) is None


def test_only_the_literals_change() -> None:
    sources = sources_of("dense_gpt")
    before = (sources.text("train.py") or "").splitlines()
    after = apply_edits(sources.text("train.py") or "", made(sources).edits).splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert changed == [
        ("SEQ_LEN = 512", "SEQ_LEN = 128"),
        ("N_LAYER = 3", "N_LAYER = 2"),
        ("GLOBAL_BATCH = 4", "GLOBAL_BATCH = 2"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("N_LAYER = 12\n", [12]),
        ("class C:\n    num_hidden_layers: int = 24\n", [24]),
        ('p.add_argument("--n-layers", type=int, default=6)\n', [6]),
        ("layers = [1, 2]\nBLOCK_SIZE = 128\nblock = 64\n", []),
        ("depth = True\n", []),
        ("n_layer = (\n", []),
    ],
)
def test_layers_are_told_by_their_name(text: str, found: list[int]) -> None:
    bindings = depth_bindings(["a.py"], MappingSources({"a.py": text}))
    assert [value for value, _ in bindings] == found


def test_a_second_number_of_layers_is_left_alone() -> None:
    text = (sources_of("dense_gpt").text("train.py") or "").replace(
        "N_HEAD = 12\n", "N_HEAD = 12\nn_layers = 9\n"
    )
    sources = MappingSources({"train.py": text})
    assert "layers" not in made(sources).smaller
