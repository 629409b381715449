"""Settings of this host, in the runner's own state folder; nothing in a repository reaches them.

sandbox = "auto"            # or bubblewrap, landlock, off
readable = ["/data/tokens"] # more that jobs may read
"""

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from infrarsi.errors import ConfigError
from infrarsi.frozen import Frozen

HOST_FILE = "host.toml"


class HostSettings(Frozen):
    """`readable` are absolute paths of this host."""

    sandbox: Literal["auto", "bubblewrap", "landlock", "off"] = "auto"
    readable: list[str] = Field(default_factory=list)


def read_host_settings(state: Path) -> HostSettings:
    """The settings in that state folder; ConfigError where they cannot be used."""
    path = state / HOST_FILE
    try:
        return HostSettings.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return HostSettings()
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}.", "Mend or remove it.") from error
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"{path}: {name}: {first['msg']}.", "See docs/runner.md for its settings."
        ) from error
