"""How calls reach the service: one connection for each, which another thread can close."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

MAX_ANSWER = 1 << 20  # bytes


class Cancelled(Exception):
    """The call was cancelled by another thread."""


class Cancellation:
    """Ends a call from another thread: its pause, or its connection."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def cancel(self) -> None:
        with self._lock:
            self._event.set()
            if self._socket is not None:
                _shut(self._socket)

    def attach(self, sock: socket.socket | None) -> None:
        """Names the socket of the call, None when the call is over. Raises Cancelled if it was cancelled before."""
        with self._lock:
            self._socket = sock
        self.sleep(0)

    def sleep(self, seconds: float) -> None:
        """Pauses; raises Cancelled as soon as the call is cancelled."""
        if self._event.wait(seconds):
            raise Cancelled


@dataclass(frozen=True)
class Request:
    """An HTTP request."""

    method: str
    url: str
    headers: Mapping[str, str]  # of which Authorization hides itself
    body: bytes | None = field(repr=False)
    timeout: float  # seconds until the whole answer has to be there
    cancellation: Cancellation


@dataclass(frozen=True)
class Response:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes = field(repr=False)  # at most one byte more than MAX_ANSWER


class HTTPTransport:
    """Sends requests by http.client, directly: it uses no proxy of the environment and follows no redirect."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        """ssl_context is for a private certificate authority; the default is that of the system."""
        self._ssl_context = ssl_context

    def __call__(self, request: Request) -> Response:
        """Raises OSError, TimeoutError among them, or http.client.HTTPException."""
        deadline = time.monotonic() + request.timeout
        url = urlsplit(request.url)
        context = None
        connection = http.client.HTTPConnection(url.netloc, timeout=request.timeout)
        if url.scheme == "https":
            context = self._ssl_context = self._ssl_context or ssl.create_default_context()  # takes a while
            connection = http.client.HTTPSConnection(url.netloc, timeout=request.timeout, context=context)
        with contextlib.closing(connection):
            http.client.HTTPConnection.connect(connection)
            if context:  # the handshake is below, where it can be ended
                connection.sock = context.wrap_socket(connection.sock, server_hostname=connection.host, do_handshake_on_connect=False)
            watched: socket.socket = connection.sock
            request.cancellation.attach(watched)
            late = threading.Event()

            def expire() -> None:
                late.set()
                _shut(watched)

            # A timeout of the socket begins anew with each byte, so a timer ends the call as a whole.
            timer = threading.Timer(deadline - time.monotonic(), expire)
            timer.daemon = True
            timer.start()
            try:
                if isinstance(watched, ssl.SSLSocket):
                    watched.do_handshake()
                target = url.path + (f"?{url.query}" if url.query else "")
                connection.request(request.method, target, request.body, dict(request.headers))
                answer = connection.getresponse()
                body = answer.read(MAX_ANSWER + 1)
                if (answer.length and len(body) <= MAX_ANSWER) or late.is_set():
                    raise http.client.IncompleteRead(body, answer.length)
            except (OSError, http.client.HTTPException) as error:
                if late.is_set():
                    raise TimeoutError("The answer did not come in time.") from error
                raise
            finally:
                timer.cancel()
                request.cancellation.attach(None)
        return Response(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)


def _shut(sock: socket.socket) -> None:
    """Ends the connection, which wakes the thread that reads from it."""
    with contextlib.suppress(OSError):
        # Not the method of a TLS socket: it would change what the other thread reads by.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
