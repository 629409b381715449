"""Tensors to and from files as raw bytes, one at a time and without copies: never pickles."""

import ctypes

import torch


def whole(tensor):
    """A plain, contiguous tensor of the whole value; gathers a sharded one from its peers."""
    tensor = tensor.detach()
    if hasattr(tensor, "full_tensor"):
        tensor = tensor.full_tensor()
    return tensor.cpu().contiguous()


def n_bytes(tensor):
    """Bytes of the whole value."""
    return tensor.numel() * tensor.element_size()


def _buffer(tensor):
    return (ctypes.c_char * n_bytes(tensor)).from_address(tensor.data_ptr())


def write_tensor(file, tensor):
    """Append a plain CPU tensor's bytes to a binary file; returns how many."""
    if n_bytes(tensor):
        file.write(_buffer(tensor))
    return n_bytes(tensor)


def read_tensor(file, entry):
    """The tensor an index entry tells of. Raises ValueError where the file is too short."""
    tensor = torch.empty(tuple(entry["shape"]), dtype=getattr(torch, entry["dtype"]))
    file.seek(entry["offset"])
    if n_bytes(tensor) != entry["n_bytes"] or (
        n_bytes(tensor) and file.readinto(_buffer(tensor)) != n_bytes(tensor)
    ):
        raise ValueError(f"the audit file does not hold {entry['role']} of {entry['name']}")
    return tensor
