"""Which campaigns are applied in a repository, read from the trailers of its commits."""

from infrarsi_server.workspace.root import Repository

CAMPAIGN_TRAILER = "Infrarsi-Campaign"
REVERTS_TRAILER = "Infrarsi-Reverts"
_VALUES = "%(trailers:key={},valueonly,separator=%x2C)"


def applied_commits(repository: Repository, tips: list[str], campaign: str | None) -> list[str]:
    """Commits in the history of the tips that apply the campaign, or any; newest first."""
    fields = ["%H", *map(_VALUES.format, (CAMPAIGN_TRAILER, REVERTS_TRAILER)), "."]
    log = repository.git().text(
        "log", f"--format={'%x09'.join(fields)}", f"--grep=^{CAMPAIGN_TRAILER}: ", *tips, "--"
    )
    rows = [line.split("\t") for line in log.splitlines()]
    applying = [(sha, name) for sha, name, reverts, _ in rows if name and not reverts]
    return [sha for sha, name in applying if campaign in (None, name)]


def standing_commits(repository: Repository, tips: list[str], campaign: str | None) -> list[str]:
    """Those of them that are not taken back."""
    found = applied_commits(repository, tips, campaign)
    return [c for c in found if not _is_reverted(repository, tips, c)]


def _is_reverted(repository: Repository, tips: list[str], commit: str) -> bool:
    sentence = f"--grep=This reverts commit {commit}"
    return bool(repository.git().text("log", "-1", "--format=%H", sentence, *tips, "--"))
