"""The version of InfraRSI that is installed."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """The distribution's version, or 0 where it runs from a bare source tree."""
    try:
        return version("infrarsi")
    except PackageNotFoundError:
        return "0"
