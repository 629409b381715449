"""A YAML file plus dotted overrides from the command line."""

import yaml


class Config(dict):
    """A dictionary whose keys are attributes as well."""

    def __getattr__(self, name):
        try:
            value = self[name]
        except KeyError as error:
            raise AttributeError(name) from error
        return Config(value) if isinstance(value, dict) else value


def load_config(path, overrides=()):
    with open(path) as file:
        tree = yaml.safe_load(file)
    for override in overrides:
        dotted, _, text = override.partition("=")
        *parents, leaf = dotted.split(".")
        node = tree
        for parent in parents:
            node = node[parent]
        node[leaf] = yaml.safe_load(text)
    return Config(tree)
