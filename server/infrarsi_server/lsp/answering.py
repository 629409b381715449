"""Between the wire and our own requests: parameters in, results out, failures as two sentences."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from lsprotocol import types
from pydantic import ValidationError
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from infrarsi.errors import InfraRSIError
from infrarsi.frozen import Frozen

P = TypeVar("P", bound=Frozen)


def parse_params(kind: type[P], params: object) -> P:
    """The parameters of a request.

    Raises:
        JsonRpcInvalidParams: they are not of that kind; names the field.
    """
    try:
        return kind.model_validate_json(json.dumps({} if params is None else params))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or kind.__name__
        raise JsonRpcInvalidParams(message=f"{field}: {first['msg']}") from error


def render_result(result: Frozen) -> Mapping[str, Any]:
    """A result as plain JSON."""
    return result.model_dump(mode="json", by_alias=True)


@contextmanager
def answering() -> Generator[None]:
    """Turn what a person can act on into a failed request that says so."""
    try:
        yield
    except InfraRSIError as error:
        raise JsonRpcException(
            message=str(error),
            code=types.LSPErrorCodes.RequestFailed.value,
            data={"what": error.what, "do": error.do, "exit_code": error.exit_code},
        ) from error
