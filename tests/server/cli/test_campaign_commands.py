import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import recorded_results as recorded
from command_line import CommandLine, start_process
from jobs import JOB
from repositories import git, make_repository, write_files
from scripted_campaign import campaign_view, scripted_campaign
from scripted_runner import answer, scripted_runner

from infrarsi.contract import make_lock, write_locks
from infrarsi.wire.messages import PROTOCOL, CampaignKind, CampaignState, StartCampaign
from infrarsi.wire.results import Speedup, VerifyResult

CONFIG = f'[job.main]\nlaunch = "python train.py"\npython = "{sys.executable}"\n'
LOCK = make_lock(recorded.make_contract(), {}, "0" * 40)
FILES = {
    "train.py": recorded.TRAIN,
    "infrarsi.toml": CONFIG,
    ".infrarsi/contract.lock.json": write_locks({"main": LOCK}),
}
VERDICT = VerifyResult(verdict="accepted", speedup=Speedup(ratio=1.2, low=1.1, high=1.3))


@pytest.fixture
def job(root: Path) -> Path:
    return make_repository(root, FILES)


def test_doctor_says_first_what_it_will_run(job: Path, infrarsi: CommandLine, state: Path) -> None:
    with scripted_campaign(state, campaign_view("doctor")) as scripted:
        done = infrarsi("doctor", "--id", "c1", "--json")
    content = done.json("doctor")
    assert done.code == 0
    assert content["profile"]["forward_s"] == 0.6
    assert ("PUT", "/v1/objects") in scripted.asked
    assert ("POST", "/v1/campaigns") in scripted.asked
    told = done.err.splitlines()
    assert told.index("Two runs of the baseline.") < told.index(
        "search 1/6: micro_batch=4, about 1 min 20 s left"
    )
    assert "This takes about 1 min 30 s." in told
    snapshot = git(job, "rev-parse", "refs/infrarsi/campaigns/c1")
    assert git(job, "show", f"{snapshot}:train.py") == recorded.TRAIN.strip()


def test_doctor_for_people_names_phases_and_lines(
    job: Path, infrarsi: CommandLine, state: Path
) -> None:
    with scripted_campaign(state, campaign_view("doctor")):
        done = infrarsi("doctor", "--id", "c1")
    assert "step 2.00 s [1.90 s, 2.10 s]" in done.out
    assert "backward 60.0 %" in done.out
    assert "train.py:7  600 ms  forward" in done.out


def test_run_shows_trials_and_answers_with_the_report(
    job: Path, infrarsi: CommandLine, state: Path
) -> None:
    with scripted_campaign(state, campaign_view("run")):
        done = infrarsi("run", "--id", "c1", "--trials", "6", "--minutes", "2", "--json")
    content = done.json("run")
    assert done.code == 0
    assert content["promoted"]["speedup"]["ratio"] == 1.93
    assert content["promoted"]["changes"][0]["line"] == 3
    assert "trial 1: micro_batch=8: out of memory" in done.err
    assert "(best 2.00x, 1 out of memory)" in done.err


def test_run_without_a_promotion_is_1_where_a_finalist_stayed_open(
    job: Path, infrarsi: CommandLine, state: Path
) -> None:
    with scripted_campaign(state, campaign_view("run", promoted=False)):
        done = infrarsi("run", "--id", "c1")
    assert done.code == 1
    assert "nothing was promoted" in done.out


def test_a_failed_campaign_ends_with_its_own_words_and_code(
    job: Path, infrarsi: CommandLine, state: Path
) -> None:
    failed = campaign_view(
        "doctor", "failed", what="The job crashed: exit code 7.", do="Mend it.", exit_code=2
    )
    with scripted_campaign(state, failed):
        done = infrarsi("doctor", "--id", "c1", "--json")
    assert done.code == 2
    assert done.json("error") == {
        "error": {"what": "The job crashed: exit code 7.", "do": "Mend it."}
    }


def test_a_stopped_campaign_is_no_answer(job: Path, infrarsi: CommandLine, state: Path) -> None:
    with scripted_campaign(state, campaign_view("run", "stopped")):
        done = infrarsi("run", "--rejoin", "c1")
    assert (done.code, "was stopped" in done.err) == (1, True)


def test_a_campaign_can_be_stopped_and_rejoined(
    job: Path, infrarsi: CommandLine, state: Path
) -> None:
    with scripted_campaign(state, campaign_view("run")) as scripted:
        stopped = infrarsi("run", "--stop", "c1", "--json").json("run-stop")
        assert stopped == {"campaign": "c1", "state": "finished"}
        assert ("POST", "/v1/campaigns/c1/stop") in scripted.asked
        assert infrarsi("run", "--rejoin", "c1", "--json").json("run")["campaign"] == "c1"
        wrong = infrarsi("doctor", "--rejoin", "c1")
        unknown = infrarsi("run", "--rejoin", "c9")
    assert (wrong.code, "infrarsi run --rejoin c1" in wrong.err) == (2, True)
    assert (unknown.code, "No such campaign." in unknown.err) == (2, True)
    assert "infrarsi runner status" in unknown.err


@pytest.mark.parametrize("command", [("report", "--campaign"), ("run", "--stop")])
@pytest.mark.parametrize("campaign", ["c9", "../../v1/health", "c1?x", ""])
def test_a_campaign_that_is_not_there_is_2_and_says_how_to_list_them(
    job: Path, infrarsi: CommandLine, state: Path, command: tuple[str, ...], campaign: str
) -> None:
    with scripted_campaign(state, campaign_view("run")) as scripted:
        done = infrarsi(*command, campaign)
    assert (done.code, "infrarsi runner status" in done.err) == (2, True)
    asked = {target for _, target in scripted.asked}
    assert asked <= {"/v1/health", "/v1/campaigns/c9", "/v1/campaigns/c9/stop"}


@pytest.mark.parametrize(
    ("kind", "ended", "advice"),
    [
        ("doctor", "finished", "infrarsi doctor --rejoin c1"),
        ("run", "running", "infrarsi run --rejoin c1"),
        ("run", "stopped", "Start another with: infrarsi run"),
    ],
)
def test_a_campaign_without_a_report_says_where_to_look(
    job: Path,
    infrarsi: CommandLine,
    state: Path,
    kind: CampaignKind,
    ended: CampaignState,
    advice: str,
) -> None:
    with scripted_campaign(state, campaign_view(kind, ended)):
        done = infrarsi("report", "--campaign", "c1")
    assert (done.code, advice in done.err) == (2, True)


def test_stopping_promises_no_report(job: Path, infrarsi: CommandLine, state: Path) -> None:
    with scripted_campaign(state, campaign_view("run", "stopped")):
        assert "has no report" in infrarsi("run", "--stop", "c1").err
    with scripted_campaign(state, campaign_view("run")):
        assert "has finished already" in infrarsi("run", "--stop", "c1").err


def test_ctrl_c_without_a_terminal_leaves_the_campaign_running(job: Path, state: Path) -> None:
    with scripted_campaign(state, campaign_view("run", "running")) as scripted:
        scripted.goes_on.clear()
        process = start_process(job, "run", "--id", "c1", "--json", state=state)
        assert process.stderr is not None
        said: list[str] = []
        while "This takes about" not in "".join(said):
            said.append(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "goes on without you" in json.loads(out)["error"]["what"]
    assert "--rejoin c1" in err
    assert "Traceback" not in err
    assert ("POST", "/v1/campaigns/c1/stop") not in scripted.asked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--agent", "anthropic"], "not built yet"),
        (["run", "faster-than-light"], "not known"),
        (["run", "--id", "../x"], "cannot be a campaign's id"),
        (["run", "--trials", "0"], "--trials"),
        (["doctor", "--quick"], "--quick"),
        (["run", "--job", "other"], "no job `other`"),
        (["verify", "--before", "."], "--after"),
        (["mcp"], "not built yet"),
        (["bank", "export"], "not built yet"),
        (["estimate", "--job", "none.jsonl"], "none.jsonl"),
    ],
)
def test_what_cannot_be_done_is_said_with_exit_code_2(
    job: Path, infrarsi: CommandLine, state: Path, arguments: list[str], message: str
) -> None:
    with scripted_campaign(state, campaign_view("run")):
        done = infrarsi(*arguments)
    assert done.code == 2
    assert message in done.err


def test_a_launch_line_changed_since_the_lock_is_refused(job: Path, infrarsi: CommandLine) -> None:
    write_files(job, {"infrarsi.toml": CONFIG.replace("train.py", "train.py --fast")})
    done = infrarsi("doctor")
    assert (done.code, "not the locked one" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        ({"train.py": JOB["train.py"].replace("ACCUMULATE = 2", "ACCUMULATE = 4")}, "16"),
        ({"data/text.txt": "other"}, "data/text.txt"),
    ],
)
def test_a_workspace_that_left_its_lock_is_refused_before_any_run(
    root: Path, infrarsi: CommandLine, state: Path, edited: dict[str, str], told: str
) -> None:
    make_repository(root, {**JOB, "infrarsi.toml": f'{CONFIG}locked = ["data/**"]\n'})
    assert infrarsi("lock").code == 0
    write_files(root, edited)
    done = infrarsi("doctor", "--json")
    error = done.json("error")["error"]
    assert done.code == 2
    assert told in error["what"]
    assert error["do"] == "Restore it or run `infrarsi lock`."
    assert not state.exists()


def test_an_interpreter_without_torch_is_refused_before_any_run(
    job: Path, infrarsi: CommandLine, state: Path
) -> None:
    write_files(job, {"infrarsi.toml": CONFIG.replace(sys.executable, "/usr/bin/env")})
    done = infrarsi("doctor", "--json")
    assert done.code == 2
    assert done.json("error")["error"] == {
        "what": "/usr/bin/env has no torch.",
        "do": "Set python in infrarsi.toml to the interpreter that runs the job.",
    }
    verify = infrarsi("verify", "--before", job, "--after", job)
    assert (verify.code, "has no torch" in verify.err) == (2, True)
    assert not state.exists()


def test_no_runner_and_none_to_start_is_3(
    job: Path, infrarsi: CommandLine, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = infrarsi("doctor", "--json")
    assert done.code == 3
    assert "infrarsi[runner]" in done.json("error")["error"]["do"]


def test_verify_answers_with_verdict_and_gain(
    job: Path, tmp_path: Path, infrarsi: CommandLine, state: Path
) -> None:
    after = write_files(tmp_path / "after dir", {"train.py": recorded.TRAIN})
    with scripted_campaign(state, campaign_view("verify", verify=VERDICT)) as scripted:
        done = infrarsi("verify", "--before", job, "--after", after, "--id", "c1", "--json")
    content = done.json("verify")
    assert done.code == 0
    assert content["verdict"] == "accepted"
    assert content["speedup"] == {"ratio": 1.2, "low": 1.1, "high": 1.3, "level": 0.95}
    assert [asked[0] for asked in scripted.asked].count("PUT") == 2
    assert "the lock of job `main`" in done.err
    assert git(job, "for-each-ref", "refs/infrarsi") == ""


@pytest.mark.parametrize(
    ("arguments", "minutes", "is_quick"), [((), 30.0, True), (("--minutes", "7.5"), 7.5, False)]
)
def test_verify_passes_its_minutes_on(
    job: Path,
    infrarsi: CommandLine,
    state: Path,
    arguments: tuple[str, ...],
    minutes: float,
    is_quick: bool,
) -> None:
    with scripted_campaign(state, campaign_view("verify", verify=VERDICT)) as scripted:
        infrarsi("verify", "--before", job, "--after", job, "--id", "c1", *arguments)
    starts = [body for body in scripted.bodies if body.startswith(b"{")]
    request = StartCampaign.model_validate_json(starts[-1])
    assert (request.budget.minutes, request.quick) == (minutes, is_quick)


@pytest.mark.parametrize("verdict", ["rejected", "inconclusive"])
def test_verify_is_1_unless_accepted(
    job: Path, infrarsi: CommandLine, state: Path, verdict: str
) -> None:
    result = VerifyResult.model_validate({"verdict": verdict, "missing": ("no second rank",)})
    with scripted_campaign(state, campaign_view("verify", verify=result)):
        done = infrarsi("verify", "--before", job, "--after", job, "--id", "c1")
    assert done.code == 1
    assert "missing: no second rank" in done.out


def test_report_writes_markdown_and_json(job: Path, infrarsi: CommandLine, state: Path) -> None:
    with scripted_campaign(state, campaign_view("run")):
        assert infrarsi("report").code == 2
        git(job, "update-ref", "refs/infrarsi/campaigns/c1", "HEAD")
        content = infrarsi("report", "--json").json("report")
        page = infrarsi("report").out
        infrarsi("report", "--output", "out/report.md")
        named = infrarsi("report", "--campaign", "c1", "--json", "--output", "report.json")
    assert content["cost"]["n_oom"] == 1
    assert page.startswith("# main: campaign c1")
    assert (job / "out/report.md").read_text() == page
    assert json.loads((job / "report.json").read_text()) == named.json("report") == content


def test_a_report_needs_no_usable_lock(job: Path, infrarsi: CommandLine, state: Path) -> None:
    write_files(job, {".infrarsi/contract.lock.json": "{"})
    with scripted_campaign(state, campaign_view("run")):
        assert infrarsi("doctor").code == 2
        assert infrarsi("report", "--campaign", "c1", "--json").json("report")["campaign"] == "c1"


def test_apply_and_revert_are_two_commands(job: Path, infrarsi: CommandLine, state: Path) -> None:
    with scripted_campaign(state, campaign_view("run")):
        git(job, "update-ref", "refs/infrarsi/campaigns/c1", "HEAD")
        applied = infrarsi("apply", "--json").json("apply")
        twice = infrarsi("apply")
    assert applied["branch"] == "infrarsi/main/c1"
    assert git(job, "rev-parse", "infrarsi/main/c1") == applied["commit"]
    assert (twice.code, "already applied" in twice.err) == (2, True)
    reverted = infrarsi("apply", "--revert", "--json").json("apply")
    assert reverted["reverts"] == applied["commit"]
    assert git(job, "status", "--porcelain") == ""


def test_nothing_promoted_cannot_be_applied(job: Path, infrarsi: CommandLine, state: Path) -> None:
    with scripted_campaign(state, campaign_view("run", promoted=False)):
        git(job, "update-ref", "refs/infrarsi/campaigns/c1", "HEAD")
        newest, named = infrarsi("apply"), infrarsi("apply", "--campaign", "c1")
    assert (newest.code, "promoted anything" in newest.err) == (2, True)
    assert (named.code, "promoted nothing" in named.err) == (2, True)


def test_runner_status_starts_nothing(infrarsi: CommandLine, state: Path) -> None:
    down = infrarsi("runner", "status", "--json").json("runner-status")
    assert down["running"] is False
    assert infrarsi("runner", "stop").code == 0
    assert not state.exists()
    with scripted_campaign(state, campaign_view("run")):
        up = infrarsi("runner", "status", "--json").json("runner-status")
        assert "c1  run  finished" in infrarsi("runner", "status").out
    assert (up["running"], up["pid"], up["campaigns"][0]["id"]) == (True, 1, "c1")


def test_a_runner_of_another_protocol_is_asked_to_end(infrarsi: CommandLine, state: Path) -> None:
    other = f'{{"protocol": {PROTOCOL + 1}, "shape": "unknown"}}'
    asked: list[str] = []

    def reply(method: str, target: str) -> bytes:
        asked.append(f"{method} {target}")
        return answer(other)

    _note(state, pid=1)
    with scripted_runner(state / "s", reply):
        assert infrarsi("runner", "status").code == 3
        assert infrarsi("runner", "stop", "--json").json("runner-status")["running"] is False
    assert asked[-1] == "POST /v1/shutdown"


def test_a_runner_that_takes_no_request_is_signalled_and_another_process_is_not(
    infrarsi: CommandLine, state: Path
) -> None:
    sleep = "import sys; sys.stdin.read()"
    argv = [sys.executable, "-c", sleep]
    with (
        subprocess.Popen(argv, stdin=subprocess.PIPE) as other,
        subprocess.Popen([*argv, "infrarsi_runner"], stdin=subprocess.PIPE) as runner,
    ):
        _note(state, pid=other.pid)
        with scripted_runner(state / "s", lambda *_: answer("{}", status=404)):
            refused = infrarsi("runner", "stop")
            _note(state, pid=runner.pid)
            stopped = infrarsi("runner", "stop", "--json").json("runner-status")
        assert (refused.code, "cannot be ended" in refused.err) == (3, True)
        assert stopped["pid"] == runner.pid
        assert runner.wait(timeout=60) == -signal.SIGTERM
        assert other.poll() is None


def _note(state: Path, pid: int) -> None:
    state.mkdir(parents=True, exist_ok=True)
    (state / "runner.json").write_text(json.dumps({"socket": str(state / "s"), "pid": pid}))


def test_estimate_answers_every_line(tmp_path: Path, infrarsi: CommandLine) -> None:
    write_files(tmp_path, {"jobs.jsonl": '{"gpus": 8}\n\nnot json\n[1]\n'})
    done = infrarsi("estimate", "--job", tmp_path / "jobs.jsonl")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert len(answers) == 3
    assert all("error" in answer for answer in answers[1:])


def test_the_bank_is_honestly_empty(infrarsi: CommandLine) -> None:
    assert infrarsi("bank", "list", "--json").json("bank-list") == {"receipts": []}
    assert "not built yet" in infrarsi("bank", "list").err


@pytest.mark.parametrize("arguments", [("mcp",), ("bank", "show"), ("bank", "import", "x")])
def test_what_is_not_built_says_so_in_json_too(
    infrarsi: CommandLine, arguments: tuple[str, ...]
) -> None:
    done = infrarsi(*arguments, "--json")
    assert (done.code, "not built yet" in done.json("error")["error"]["what"]) == (2, True)
