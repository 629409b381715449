"""How long nobody has spoken to the daemon. An open event stream counts as speaking."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send


class Activity:
    """Wraps the application and counts requests under way."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float]) -> None:
        """Idle from now on."""
        self._app = app
        self._clock = clock
        self._n_open = 0
        self._last_s = clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        self._n_open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._n_open -= 1
            self._last_s = self._clock()

    def idle_s(self) -> float:
        """Seconds since the last request ended; 0 while one is under way."""
        return 0.0 if self._n_open else self._clock() - self._last_s
