import torch

from infrarsi_probe.model_inputs import ModelInputs, argument_names, named_tensors

IDS = torch.zeros(3, 5, dtype=torch.int64)
TARGETS = torch.ones(3, 5, dtype=torch.int64)
MASK = torch.ones(3, 5, dtype=torch.int64)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> None: ...


def test_names_come_from_the_forward_inside_a_wrapper():
    wrapped = torch.compile(Model(), backend="eager")
    assert argument_names(wrapped) == ("x", "y")


def test_targets_are_found_by_name():
    inputs = ModelInputs(named_tensors(("x", "y"), (IDS, TARGETS), {}))
    assert inputs.ids is IDS
    assert inputs.targets is TARGETS
    assert (inputs.rows, inputs.seq_len) == (3, 5)


def test_a_mask_is_never_taken_for_targets():
    inputs = ModelInputs(named_tensors((), (), {"input_ids": IDS, "attention_mask": MASK}))
    assert inputs.targets is None
    assert [n for n, _ in inputs.others] == ["attention_mask"]


def test_a_dictionary_is_looked_into():
    inputs = ModelInputs(named_tensors(("batch",), ({"labels": TARGETS, "input_ids": IDS},), {}))
    assert inputs.ids is IDS
    assert inputs.targets is TARGETS


def test_a_second_tensor_of_the_same_shape_is_the_targets():
    inputs = ModelInputs(named_tensors(("a", "b"), (IDS, TARGETS), {}))
    assert inputs.targets is TARGETS


def test_rows_of_floats_are_counted_without_ids():
    inputs = ModelInputs(named_tensors(("x",), (torch.zeros(7, 2),), {}))
    assert inputs.ids is None
    assert inputs.rows == 7
