"""What a step calls backward on, as a sum of weighted terms."""

from infrarsi.launch import parse_launch
from infrarsi.reading import MappingSources, follow
from infrarsi.reading.objective import Objective

PLAIN = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
N = 4
model = nn.Linear(8, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
def draw():
    return torch.randn(2, 8), torch.zeros(2, dtype=torch.long)
{define}
for step in range(10):
    for _ in range(N):
        x, y = draw()
        {loss}
        loss.backward()
    optimizer.step()
"""


def _objective(loss: str, define: str = "") -> Objective:
    text = PLAIN.format(loss=loss, define=define)
    objective = follow(MappingSources({"a.py": text}), parse_launch("python a.py")).objective
    assert objective is not None
    return objective


def test_spellings_of_one_loss_are_written_out_alike() -> None:
    plain = _objective("loss = F.cross_entropy(model(x), y) / N")
    module = _objective("loss = criterion(model(x).view(-1, 16), y.flatten()) * (1 / N)")
    function = _objective(
        "loss = compute(model, x, y)",
        "def compute(net, a, b):\n    return F.cross_entropy(net(a), b) / N",
    )
    assert plain.main.factor == module.main.factor == function.main.factor == 0.25
    assert plain.main.text == module.main.text == function.main.text
    assert plain.is_whole


def test_terms_keep_their_weights() -> None:
    objective = _objective(
        "out = model(x); loss = (F.cross_entropy(out, y) + 0.01 * out.pow(2).mean()) / N"
    )
    assert [term.factor for term in objective.terms] == [0.25, 0.0025]
    assert "cross_entropy" in objective.main.text


def test_a_cast_and_a_slice_stay_visible() -> None:
    text = _objective("loss = F.cross_entropy(model(x).float()[::2], y[::2])").main.text
    assert "cast(hidden, 'fp32')[::2]" in text
    assert "[::2])" in text


def test_what_depends_on_a_condition_is_not_whole() -> None:
    objective = _objective(
        "loss = F.cross_entropy(model(x), y)\n        if step > 5: loss = loss * 2"
    )
    assert not objective.is_whole
