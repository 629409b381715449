from pathlib import Path

import pytest
import recorded_results as recorded
from repositories import commit_files, git, make_repository, visible_state, write_files

from infrarsi.edits import apply_edits
from infrarsi.errors import EditConflict, UsageError
from infrarsi.launch import Launch
from infrarsi.wire.messages import CampaignView
from infrarsi.wire.results import Promotion
from infrarsi_server.operations.apply import ApplyResult, apply_promotion
from infrarsi_server.operations.campaigns import measured_texts
from infrarsi_server.operations.project import open_project
from infrarsi_server.operations.revert import revert_promotion
from infrarsi_server.workspace.root import need_repository
from infrarsi_server.workspace.snapshots import snapshot_workspace

CONFIG = '# mine\n[job.main]\nlaunch = "python train.py"  # stays\n'
FILES = {"train.py": recorded.TRAIN, "infrarsi.toml": CONFIG}
AFTER = apply_edits(recorded.TRAIN, recorded.EDITS).strip()
BRANCH = "infrarsi/main/c1"


def view(promotion: Promotion | None, campaign: str = "c1") -> CampaignView:
    return CampaignView(
        id=campaign,
        kind="run",
        state="finished",
        created_s=0.0,
        contract_digest="d",
        run=recorded.run_result(promoted=promotion, campaign=campaign),
    )


def apply(root: Path, promotion: Promotion | None = None, campaign: str = "c1") -> ApplyResult:
    project = open_project(root)
    found = view(promotion or recorded.promotion(), campaign)
    return apply_promotion(project, found, measured_texts(project, found))


def remember_campaign(root: Path, campaign: str = "c1") -> None:
    snapshot_workspace(root, need_repository(root)).keep_for(campaign)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "repo", FILES)
    remember_campaign(made)
    return made


def test_apply_commits_the_edits_with_their_evidence(root: Path) -> None:
    before = visible_state(root)
    made = apply(root)
    after = visible_state(root)
    assert {**after, "refs": ""} == {**before, "refs": ""}
    assert made.branch == BRANCH
    assert git(root, "show", f"{BRANCH}:train.py") == AFTER
    assert git(root, "diff", "--name-only", "HEAD", BRANCH) == "train.py"
    message = git(root, "log", "-1", "--format=%B", BRANCH)
    subject = message.splitlines()[0]
    assert subject == "Speed up main 1.93x: micro_batch=4, bf16_autocast"
    assert "- micro_batch=4: Fewer, larger matrix products." in message
    trailers = git(root, "log", "-1", "--format=%(trailers:only)", BRANCH).splitlines()
    assert "Infrarsi-Speedup: 1.93x [1.85, 2.02] 95%" in trailers
    assert "Infrarsi-Mfu: 24.5 % -> 47.3 %" in trailers
    assert "Infrarsi-Trials: 6, 5 failed, 1 out of memory" in trailers
    assert f"Infrarsi-Contract: {recorded.lock().digest}" in trailers
    assert "Infrarsi-Campaign: c1" in trailers


def test_a_long_list_of_parts_keeps_the_subject_short(root: Path) -> None:
    promotion = recorded.promotion()
    parts = tuple(promotion.parts[0].model_copy(update={"knob": f"knob_{n}"}) for n in range(9))
    made = apply(root, promotion.model_copy(update={"parts": parts}))
    assert made.subject == "Speed up main 1.93x by 9 changes"


def test_a_launch_change_is_written_into_the_config_and_keeps_its_comments(root: Path) -> None:
    promotion = recorded.promotion(Launch(script="train.py", args=("--note", "it's")))
    made = apply(root, promotion)
    text = git(root, "show", f"{BRANCH}:infrarsi.toml")
    assert text.startswith("# mine\n[job.main]\n")
    assert "# stays" in text
    git(root, "checkout", "--quiet", BRANCH)
    job = open_project(root).config.jobs["main"]
    assert job.launch == """python train.py --note 'it'"'"'s'"""
    assert any("launch line" in note for note in made.notes)


def test_a_config_that_is_not_committed_comes_with_the_launch_and_a_note(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"train.py": recorded.TRAIN})
    write_files(root, {"infrarsi.toml": CONFIG})
    remember_campaign(root)
    made = apply(root, recorded.promotion(Launch(script="train.py", args=("-x",))))
    assert "python train.py -x" in git(root, "show", f"{BRANCH}:infrarsi.toml")
    assert any("commit it before you merge" in note for note in made.notes)


def test_applying_twice_is_refused(root: Path) -> None:
    apply(root)
    with pytest.raises(UsageError, match=f"already applied on branch {BRANCH}"):
        apply(root)
    git(root, "merge", "--quiet", "--ff-only", BRANCH)
    git(root, "branch", "--quiet", "-D", BRANCH)
    with pytest.raises(UsageError, match="already in the history of HEAD"):
        apply(root)


def test_a_campaign_that_promoted_nothing_cannot_be_applied(root: Path) -> None:
    project = open_project(root)
    with pytest.raises(UsageError, match="promoted nothing"):
        apply_promotion(project, view(None), {})


def test_a_measured_text_that_is_nowhere_is_a_conflict(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"infrarsi.toml": CONFIG, "other.py": ""})
    with pytest.raises(EditConflict, match=r"measured text of train\.py"):
        apply(root)


def test_uncommitted_edits_the_campaign_measured_stay_out_of_the_commit(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    mine = recorded.TRAIN.replace("range(100)", "range(100)  # mine")
    write_files(root, {"train.py": mine})
    remember_campaign(root)
    edits = (recorded.edit(mine, "BATCH = 2\n", "BATCH = 4\n"),)
    made = apply(root, recorded.promotion().model_copy(update={"edits": edits}))
    committed = git(root, "show", f"{BRANCH}:train.py")
    assert "BATCH = 4" in committed
    assert "# mine" not in committed
    assert made.merged == ("train.py",)
    assert any("differed" in note for note in made.notes)
    assert (root / "train.py").read_text() == mine


def test_a_file_that_moved_on_at_the_same_lines_is_a_conflict(root: Path) -> None:
    commit_files(root, {"train.py": recorded.TRAIN.replace("BATCH = 2", "BATCH = 16")}, "Mine")
    with pytest.raises(EditConflict, match="on the same lines"):
        apply(root)


def test_a_workspace_in_a_subfolder_is_committed_at_its_place(tmp_path: Path) -> None:
    make_repository(tmp_path, {f"jobs/{name}": text for name, text in FILES.items()})
    remember_campaign(tmp_path / "jobs")
    made = apply(tmp_path / "jobs")
    assert made.files == ("jobs/train.py",)
    assert git(tmp_path, "show", f"{BRANCH}:jobs/train.py") == AFTER


def test_revert_takes_it_back_on_its_branch(root: Path) -> None:
    applied = apply(root)
    before = visible_state(root)
    reverted = revert_promotion(open_project(root), None)
    assert reverted.reverts == applied.commit
    assert reverted.branch == BRANCH
    assert git(root, "diff", "HEAD", BRANCH) == ""
    assert {**visible_state(root), "refs": ""} == {**before, "refs": ""}
    with pytest.raises(UsageError, match="taken back already"):
        revert_promotion(open_project(root), None)
    with pytest.raises(UsageError, match="git branch -D"):
        apply(root)


def test_revert_of_a_merged_promotion_is_a_branch_from_head(root: Path) -> None:
    apply(root)
    git(root, "merge", "--quiet", "--ff-only", BRANCH)
    commit_files(root, {"later.py": ""}, "Later work")
    head = git(root, "rev-parse", "HEAD")
    reverted = revert_promotion(open_project(root), "c1")
    assert reverted.branch == f"{BRANCH}-revert"
    assert reverted.parent == head == git(root, "rev-parse", "HEAD")
    assert git(root, "show", f"{BRANCH}-revert:train.py") == recorded.TRAIN.strip()
    assert git(root, "diff", "--name-only", head, reverted.branch) == "train.py"
    with pytest.raises(UsageError, match="taken back on branch"):
        revert_promotion(open_project(root), "c1")
    git(root, "merge", "--quiet", "--ff-only", reverted.branch)
    with pytest.raises(UsageError, match="taken back already"):
        revert_promotion(open_project(root), "c1")


def test_revert_while_standing_on_the_branch_leaves_it_where_it_is(root: Path) -> None:
    apply(root)
    git(root, "checkout", "--quiet", BRANCH)
    before = visible_state(root)
    reverted = revert_promotion(open_project(root), None)
    assert reverted.branch == f"{BRANCH}-revert"
    assert {**visible_state(root), "refs": ""} == {**before, "refs": ""}


def test_revert_by_hand_counts(root: Path) -> None:
    apply(root)
    git(root, "merge", "--quiet", "--ff-only", BRANCH)
    git(root, "revert", "--no-edit", "HEAD")
    git(root, "branch", "--quiet", "-D", BRANCH)
    with pytest.raises(UsageError, match="taken back already"):
        revert_promotion(open_project(root), "c1")


def test_revert_where_nothing_was_applied_says_so(root: Path) -> None:
    with pytest.raises(UsageError, match="No promotion was applied here"):
        revert_promotion(open_project(root), None)


def test_revert_is_a_conflict_where_later_work_stands_on_its_lines(root: Path) -> None:
    apply(root)
    git(root, "merge", "--quiet", "--ff-only", BRANCH)
    text = (root / "train.py").read_text()
    commit_files(root, {"train.py": text.replace("BATCH = 4", "BATCH = 64")}, "Mine")
    with pytest.raises(EditConflict, match="on the same lines"):
        revert_promotion(open_project(root), None)


def test_of_two_promotions_each_can_be_taken_back(root: Path) -> None:
    first = recorded.promotion().model_copy(update={"edits": recorded.EDITS[:1]})
    second = recorded.promotion().model_copy(update={"edits": recorded.EDITS[2:]})
    apply(root, first, "c1")
    git(root, "merge", "--quiet", "--ff-only", BRANCH)
    remember_campaign(root, "c2")
    apply(root, second, "c2")
    reverted = revert_promotion(open_project(root), "c1")
    assert git(root, "show", f"{reverted.branch}:train.py") == recorded.TRAIN.strip()
    newest = revert_promotion(open_project(root), "c2")
    assert newest.branch == "infrarsi/main/c2"
