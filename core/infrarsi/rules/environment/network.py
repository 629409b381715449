"""E507: a job reaches for nothing over the network.

Downloads and services can bring weights, results or compute from elsewhere. Calls that open
connections or fetch files and were not there before are looked for; how the ranks of a job meet
is no such call.

Mend it by taking the call out, and putting what is needed into the repository.
"""

from collections.abc import Iterator

from infrarsi.contract import Severity, Violation
from infrarsi.contract.catalogue import violation
from infrarsi.reading import Call, Program
from infrarsi.rules.change import Change
from infrarsi.rules.difference import added, callee
from infrarsi.rules.remembered import remembered

CODE = "E507"
_LIBRARIES = (
    *("requests.", "urllib.request.", "urllib3.", "httpx.", "aiohttp.", "http.client.", "ftplib."),
    *("socket.", "paramiko.", "boto3.", "websocket.", "grpc.", "xmlrpc.", "smtplib.", "redis."),
    *("huggingface_hub.", "gdown.", "wget.", "google.cloud.", "azure.", "websockets.", "zmq."),
    *("torch.hub.", "torchvision.datasets.utils.", "asyncio.open_connection", "fsspec.", "s3fs."),
)
_NAMES = {
    *("urlopen", "urlretrieve", "hf_hub_download", "snapshot_download", "download_url"),
    *("load_state_dict_from_url", "load_dataset", "create_connection", "HTTPSConnection"),
    *("HTTPConnection", "cached_path", "download_file", "push_to_hub"),
}
_LOCAL = {"socket.gethostname", "socket.getfqdn", "socket.gethostbyname", "torch.hub.set_dir"}
_TOOLS = ("curl ", "wget ", "scp ", "rsync ", "aws s3", "gsutil ", "'curl'", "'wget'", "ssh ")
_WORDS = (
    {name.split(".")[0] for name in _LIBRARIES} | _NAMES | {tool.strip(" '") for tool in _TOOLS}
) - {"torch", "torchvision", "asyncio"}


def find(change: Change) -> Iterator[Violation]:
    """An error for a library of the network, a warning for what may load from a hub or disk."""
    if change.sides is None:
        return
    now, was = change.sides
    for call in added(_reaching(now), _reaching(was), callee):
        severity: Severity = "warning" if call.name == "load_dataset" else "error"
        yield violation(
            CODE,
            f"`{call.signature[:70]}` reaches over the network; the contract holds that a job "
            "reaches for nothing there.",
            severity=severity,
            place=call.place,
        )


@remembered
def _reaching(program: Program) -> list[Call]:
    files = {file for file, source in program.project.files.items() if _may_reach(source.text)}
    return [
        call
        for call in (program.calls if files else ())
        if call.site.scope.source.file in files and _reaches(call) and not call.is_dead
    ]


def _may_reach(text: str) -> bool:
    """Whether a file names anything of the network at all."""
    return any(word in text for word in _WORDS) or "torch.hub" in text


def _reaches(call: Call) -> bool:
    if call.callee in _LOCAL:
        return False
    if call.callee.startswith(_LIBRARIES) or call.name in _NAMES:
        return True
    starts = {"run", "system", "Popen", "check_call", "check_output", "call"}
    return call.name in starts and any(tool in call.signature for tool in _TOOLS)
