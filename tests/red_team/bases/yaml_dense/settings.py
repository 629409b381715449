"""Loads the YAML file and gives attribute access to its sections."""

from types import SimpleNamespace

import yaml


def to_namespace(value):
    if isinstance(value, dict):
        return SimpleNamespace(**{key: to_namespace(item) for key, item in value.items()})
    return value


def load_settings(path):
    with open(path) as file:
        return to_namespace(yaml.safe_load(file))
