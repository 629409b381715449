"""Which rewrites of the parameters are recognised, and what they map to."""

from infrarsi.judge.layout import Block, Layout, Piece, infer_layouts

EXPERTS = [
    ("tok.weight", (256, 64)),
    *((f"blocks.{b}.moe.experts.{e}.{w}.weight", s)
      for b in range(2) for e in range(4)
      for w, s in (("w1", (96, 64)), ("w2", (64, 96)))),
    ("head.weight", (256, 64)),
]  # fmt: skip


def only(layouts: tuple[Layout, ...]) -> Layout:
    assert layouts
    return layouts[0]


def by_baseline(layout: Layout) -> dict[str, Piece]:
    return {p.baseline.name: p for p in layout.pieces}


def test_the_same_parameters_are_the_identity():
    assert only(infer_layouts(EXPERTS, EXPERTS)).is_identity


def test_stacked_experts_are_found_by_name():
    ours = [
        ("tok.weight", (256, 64)),
        *((f"blocks.{b}.moe.{w}", s) for b in range(2)
          for w, s in (("w1", (4, 64, 96)), ("w2", (4, 96, 64)))),
        ("head.weight", (256, 64)),
    ]  # fmt: skip
    pieces = by_baseline(only(infer_layouts(ours, EXPERTS)))
    assert len(pieces) == len(EXPERTS)
    piece = pieces["blocks.1.moe.experts.2.w1.weight"]
    assert piece.candidate == Block(name="blocks.1.moe.w1", start=2, stop=3, dropped=True)
    assert piece.transposed


def test_stacked_experts_that_keep_the_linear_layout_are_not_transposed():
    ours = [
        ("tok.weight", (256, 64)),
        *((f"blocks.{b}.moe.{w}", s) for b in range(2)
          for w, s in (("w1", (4, 96, 64)), ("w2", (4, 64, 96)))),
        ("head.weight", (256, 64)),
    ]  # fmt: skip
    piece = by_baseline(only(infer_layouts(ours, EXPERTS)))["blocks.0.moe.experts.3.w2.weight"]
    assert piece.candidate.name == "blocks.0.moe.w2"
    assert not piece.transposed


def test_experts_named_otherwise_are_found_by_their_order():
    ours = [
        ("tok.weight", (256, 64)),
        *((f"blocks.{b}.moe.{w}", s) for b in range(2)
          for w, s in (("up", (4, 64, 96)), ("down", (4, 96, 64)))),
        ("head.weight", (256, 64)),
    ]  # fmt: skip
    layouts = infer_layouts(ours, EXPERTS)
    found = [by_baseline(x)["blocks.0.moe.experts.0.w1.weight"] for x in layouts]
    assert ("blocks.0.moe.up", True) in {(p.candidate.name, p.transposed) for p in found}


def test_fused_projections_are_found_and_so_is_their_split():
    apart = [(f"h.{i}.attn.{n}.{k}", s) for i in range(2) for n in ("q", "k", "v", "proj")
             for k, s in (("weight", (64, 64)), ("bias", (64,)))]  # fmt: skip
    fused = [(f"h.{i}.attn.{n}.{k}", s) for i in range(2)
             for n, m in (("qkv", 3), ("proj", 1))
             for k, s in (("weight", (64 * m, 64)), ("bias", (64 * m,)))]  # fmt: skip
    pieces = by_baseline(only(infer_layouts(fused, apart)))
    assert pieces["h.1.attn.k.weight"].candidate == Block(
        name="h.1.attn.qkv.weight", start=64, stop=128
    )
    assert pieces["h.1.attn.v.bias"].candidate == Block(
        name="h.1.attn.qkv.bias", start=128, stop=192
    )
    assert pieces["h.0.attn.proj.weight"].candidate.name == "h.0.attn.proj.weight"
    back = [
        p for p in only(infer_layouts(apart, fused)).pieces if p.candidate.name.endswith("v.bias")
    ]
    assert [(p.baseline.start, p.baseline.stop) for p in back] == [(128, 192)] * 2


def test_a_renamed_model_is_found():
    ours = [(name.replace("blocks", "layers"), shape) for name, shape in EXPERTS]
    layout = only(infer_layouts(ours, EXPERTS))
    assert {
        p.candidate.name.replace("layers", "blocks") == p.baseline.name for p in layout.pieces
    } == {True}
    assert not layout.is_identity


def test_a_padded_vocabulary_keeps_its_rows():
    ours = [("tok.weight", (250, 64)), ("head.weight", (256, 64))]
    theirs = [("tok.weight", (250, 64)), ("head.weight", (250, 64))]
    layout = only(infer_layouts(ours, theirs))
    assert layout.padded == ("head.weight",)
    assert by_baseline(layout)["head.weight"].candidate.stop == 250


def test_a_smaller_or_larger_model_has_no_layout():
    assert infer_layouts([("a", (64, 32))], [("a", (64, 64))]) == ()
    assert infer_layouts([("a", (4, 4)), ("b", (4,))], [("a", (4, 4))]) == ()
    assert infer_layouts([("a", (4, 4))], [("a", (4, 4)), ("b", (4,))]) == ()
    fewer = [("w1", (3, 64, 96)), ("w2", (3, 96, 64))]
    assert infer_layouts(fewer, EXPERTS[1:9]) == ()


def test_stacked_experts_with_fused_gate_and_up_are_found():
    theirs = [(f"moe.experts.{e}.{w}.weight", s) for e in range(4)
              for w, s in (("gate", (96, 64)), ("up", (96, 64)), ("down", (64, 96)))]  # fmt: skip
    ours = [("moe.gate_up", (4, 64, 192)), ("moe.down", (4, 96, 64))]
    pieces = by_baseline(only(infer_layouts(ours, theirs)))
    assert pieces["moe.experts.3.up.weight"].candidate == Block(
        name="moe.gate_up", start=3, stop=4, dropped=True, inner=(1, 96, 192)
    )
    assert pieces["moe.experts.3.up.weight"].transposed
    assert pieces["moe.experts.0.down.weight"].candidate.name == "moe.down"


def test_bare_parameters_that_join_modules_are_found():
    theirs = [(f"h.0.attn.{n}.{k}", s) for n in ("query", "key", "value")
              for k, s in (("weight", (64, 64)), ("bias", (64,)))]  # fmt: skip
    ours = [("h.0.attn.qkv_weight", (192, 64)), ("h.0.attn.qkv_bias", (192,))]
    pieces = by_baseline(only(infer_layouts(ours, theirs)))
    assert pieces["h.0.attn.value.bias"].candidate == Block(
        name="h.0.attn.qkv_bias", start=128, stop=192
    )
