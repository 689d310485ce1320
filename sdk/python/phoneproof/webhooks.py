"""The events of webhooks: receive checks one, and applications for WSGI and ASGI do the rest."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import hmac
import http
import inspect
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from typing import Any, Protocol

from phoneproof.answers import (
    Event,
    VerificationAttention,
    VerificationDeclined,
    VerificationExpired,
    VerificationSuccess,
    parse_object,
)
from phoneproof.errors import PhoneProofError, SignatureError

Message = MutableMapping[str, Any]  # of ASGI

MAX_BODY = 64 << 10  # bytes
TOLERANCE = 300.0  # seconds

KINDS: dict[str, type[Event]] = {
    "verification.success": VerificationSuccess,
    "verification.expired": VerificationExpired,
    "verification.declined": VerificationDeclined,
    "verification.attention": VerificationAttention,
}


class Headers(Protocol):
    """A dict of texts, or what frameworks have as request.headers. The case of names does not count."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def receive(
    headers: Headers,
    body: bytes,
    *,
    secrets: Collection[str] = (),
    test_secrets: Collection[str] = (),
    tolerance: float = TOLERANCE,
    body_signature: Callable[[str], bool] | None = None,
    now: Callable[[], float] = time.time,
) -> Event:
    """Returns the event that a webhook brought.

    body is what came, as bytes: request.get_data() in Flask, request.body in Django, await request.body() in FastAPI. The
    events of test keys, test.*, count under test_secrets alone, and all others under secrets alone; several are for a rotation.
    The time of the signature may be off by tolerance seconds. An event with x-webhook-signature alone, which covers no time, is
    refused unless body_signature is given: it is called with a digest of the body, records it, and reports whether it was
    recorded before.

    Raises SignatureError for what does not count: answer it with 401. Raises PhoneProofError with `not_raw_bytes`,
    `body_too_large`, `invalid_event`, or, for what the caller gave, `no_secret` and `invalid_argument`.
    """
    if not isinstance(body, bytes):
        raise PhoneProofError("not_raw_bytes", "The body must be the bytes that came, before JSON is parsed.")
    _check_secrets(secrets, test_secrets)
    if len(body) > MAX_BODY:
        raise PhoneProofError("body_too_large", f"The body has more than {MAX_BODY} bytes.")
    sent = {name.lower(): value for name, value in headers.items()}
    is_body_alone = body_signature is not None and "x-webhook-signature" in sent and not sent.get("webhook-signature")
    if is_body_alone:
        signatures = sent["x-webhook-signature"]
    else:
        signatures = _check_standard(sent, now(), tolerance)

    def is_signed(secret: str) -> bool:
        if is_body_alone:
            want = hmac.digest(secret.encode(errors="surrogateescape"), body, "sha256").hex()
        else:
            signed = f"{sent['webhook-id']}.{sent['webhook-timestamp']}.".encode(errors="replace") + body
            want = "v1," + base64.b64encode(hmac.digest(_get_key(secret), signed, "sha256")).decode()
        # Bytes, because compare_digest raises a TypeError for text that is not ASCII.
        parts = signatures.encode(errors="replace").split()
        return any([hmac.compare_digest(want.encode(), part) for part in parts])

    is_live, is_test = any(map(is_signed, secrets)), any(map(is_signed, test_secrets))
    if not (is_live or is_test):
        raise SignatureError("invalid_signature", "No secret signed this body.")
    try:
        content = parse_object(body, MAX_BODY)
        event = KINDS.get(str(content.get("event")).removeprefix("test."), Event)(content, sent.get("webhook-id", ""))
        at = event.timestamp.timestamp() if is_body_alone and event.timestamp else 0
    except ValueError as cause:
        raise PhoneProofError("invalid_event", f"The body is no event: {cause}.") from cause
    if not (is_test if event.is_test else is_live):
        raise SignatureError("invalid_signature", "Only test_secrets sign events of test keys, and only secrets others.")
    if body_signature is not None:
        event.webhook_id = hashlib.sha256(body).hexdigest()  # a signature of the body alone covers no header
        if is_body_alone:
            _check_time(at, now(), tolerance)
            if body_signature(event.webhook_id):
                raise SignatureError("already_seen", "This body came before.")
    return event


def _check_secrets(secrets: Collection[str], test_secrets: Collection[str]) -> None:
    """Raises PhoneProofError if the secrets cannot be used."""
    for name, some in (("secrets", secrets), ("test_secrets", test_secrets)):
        if isinstance(some, str) or not all(map(_get_key, some)):
            raise PhoneProofError("invalid_argument", f"{name} must be a list, of whsec_ and base64 or other texts.", field=name)
    if not secrets and not test_secrets:
        raise PhoneProofError("no_secret", "Without a secret anyone could send events.")
    if set(map(_get_key, secrets)) & set(map(_get_key, test_secrets)):
        raise PhoneProofError("invalid_argument", "A secret is in both secrets and test_secrets.", field="test_secrets")


def _get_key(secret: str) -> bytes:
    """Returns the key of Standard Webhooks, b"" if there is none."""
    if not secret.startswith("whsec_"):
        return secret.encode(errors="surrogateescape")
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        return b""


def _check_standard(sent: dict[str, str], now: float, tolerance: float) -> str:
    """Returns webhook-signature. Raises SignatureError if a header is missing, or the time is too far off."""
    if not all(sent.get(name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")):
        raise SignatureError("missing_signature", "webhook-id, webhook-timestamp or webhook-signature is missing.")
    if not re.fullmatch("[0-9]{1,12}", sent["webhook-timestamp"]):
        raise SignatureError("invalid_signature", "webhook-timestamp is no time.")
    _check_time(int(sent["webhook-timestamp"]), now, tolerance)
    return sent["webhook-signature"]


def _check_time(at: float, now: float, tolerance: float) -> None:
    if abs(at - now) > tolerance:
        raise SignatureError("stale_timestamp", "The event is older or newer than the tolerance. Is your clock right?")


class SeenEvents(Protocol):
    """Remembers the webhook_id of events that were handled, for seven days or longer: a table, or a cache."""

    def has(self, webhook_id: str) -> Any:
        """Reports whether an id was added."""

    def add(self, webhook_id: str) -> Any:
        """Adds an id, after its event was handled."""


class _Refused(Exception):
    """A request that is answered with this status, and with a text for developers."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _App:
    """What the applications share."""

    def __init__(
        self,
        *,
        on_event: Callable[[Event], object] | None = None,
        on_test: Callable[[Event], object] | None = None,
        secrets: Collection[str] = (),
        test_secrets: Collection[str] = (),
        tolerance: float = TOLERANCE,
        seen: SeenEvents | None = None,
        body_signature: bool = False,
    ) -> None:
        """on_event is called with each event, on_test with those of test keys, and neither with one that seen has.

        The answer is 204 once the callback returned, and 500 after an exception, so that the event is sent again. secrets,
        test_secrets and tolerance are those of receive. body_signature accepts events that have x-webhook-signature alone.
        """
        _check_secrets(secrets, test_secrets)
        for name, some, callback in (("on_event", secrets, on_event), ("on_test", test_secrets, on_test)):
            if some and callback is None:
                raise PhoneProofError("invalid_argument", f"{name} is missing.", field=name)
        if body_signature and seen is None:
            raise PhoneProofError("invalid_argument", "body_signature requires seen.", field="seen")
        self._callbacks = {False: on_event, True: on_test}
        # An event whose callback failed may come again, so seen finds the repetitions and not receive.
        hook = (lambda digest: False) if body_signature else None
        self._receive = functools.partial(
            receive, secrets=secrets, test_secrets=test_secrets, tolerance=tolerance, body_signature=hook
        )
        self._seen = seen

    def _open(self, method: str, headers: dict[str, str], body: bytes) -> tuple[Event, str, Callable[[Event], Any]]:
        """Returns the event of a request, what seen knows it by, and its callback. Raises _Refused."""
        if method != "POST":
            raise _Refused(405, "method_not_allowed")
        try:
            event = self._receive(headers, body)
        except PhoneProofError as error:
            statuses = {"body_too_large": 413, "invalid_event": 400}
            raise _Refused(statuses.get(error.code, 401), error.code) from error
        callback = self._callbacks[event.is_test]
        assert callback is not None, "its secrets require it"
        # Who has a test secret alone chooses ids, too.
        return event, "test:" * event.is_test + event.webhook_id, callback


class WSGIApp(_App):
    """Receives webhooks as a WSGI application."""

    def __call__(self, environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], Any]) -> Iterable[bytes]:
        try:
            headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
            event, key, callback = self._open(environ["REQUEST_METHOD"], headers, _read_wsgi(environ))
            if self._seen is None or not _call(self._seen.has, key):
                _call(callback, event)
                if self._seen is not None:
                    _call(self._seen.add, key)
            failure = None
        except Exception as error:
            failure = error
        status, fields, text = _make_answer(failure)
        start_response(f"{status.value} {status.phrase}", fields)
        return [text]


class ASGIApp(_App):
    """Receives webhooks as an ASGI application. Callbacks and the methods of seen may be coroutine functions; others run in threads."""

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            raise ValueError(f"a webhook does not come by {scope['type']}")
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            event, key, callback = self._open(scope["method"], headers, await _read_asgi(receive))
            if self._seen is None or not await _run(self._seen.has, key):
                await _run(callback, event)
                if self._seen is not None:
                    await _run(self._seen.add, key)
            failure = None
        except Exception as error:
            failure = error
        status, fields, text = _make_answer(failure)
        sent = [(name.lower().encode(), value.encode()) for name, value in fields]
        await send({"type": "http.response.start", "status": status.value, "headers": sent})
        await send({"type": "http.response.body", "body": text})


def _read_wsgi(environ: dict[str, Any]) -> bytes:
    """Returns the body, one byte more than the limit at most."""
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError as error:
        raise _Refused(400, "invalid_length") from error
    if environ.get("wsgi.input_terminated"):  # the server ends the input, also of a body in chunks
        length = MAX_BODY + 1
    body: bytes = environ["wsgi.input"].read(max(0, min(length, MAX_BODY + 1)))
    return body


async def _read_asgi(receive: Callable[[], Awaitable[Message]]) -> bytes:
    """Returns the body, one part more than the limit at most."""
    body, has_more = b"", True
    while has_more and len(body) <= MAX_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Refused(400, "incomplete_body")
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
    return body


async def _run(function: Callable[[Any], Any], argument: object) -> Any:
    """Calls a plain function in a thread, and awaits others."""
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    result = await asyncio.to_thread(function, argument)
    return await result if inspect.isawaitable(result) else result


def _call(function: Callable[[Any], Any], argument: object) -> Any:
    """Calls a plain function, and refuses coroutine functions."""
    result = function(argument)
    if inspect.isawaitable(result):
        raise TypeError("wsgi_app takes plain functions alone")
    return result


def _make_answer(error: Exception | None) -> tuple[http.HTTPStatus, list[tuple[str, str]], bytes]:
    """Returns the status, the headers and the body of an answer."""
    if error is None:
        return http.HTTPStatus.NO_CONTENT, [], b""
    if not isinstance(error, _Refused):
        logging.getLogger("phoneproof").error("webhook callback failed", exc_info=error)
        error = _Refused(500, "callback_failed")
    text = str(error).encode()
    allow = [("Allow", "POST")] if error.status == 405 else []
    return http.HTTPStatus(error.status), [("Content-Length", str(len(text))), *allow], text


wsgi_app = WSGIApp
asgi_app = ASGIApp
