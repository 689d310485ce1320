"""The client of the HTTP API."""

from __future__ import annotations

import base64
import contextlib
import copy
import email.utils
import http.client
import json
import math
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from phoneproof.answers import (
    Answer,
    Delivered,
    ErrorBody,
    OpenAPI,
    RequestPage,
    Started,
    Status,
    StoredRequest,
    parse_object,
    wire_name,
)
from phoneproof.errors import AlreadyConfirmedError, CodesUnsupportedError, PhoneProofError
from phoneproof.transport import MAX_ANSWER, Cancellation, HTTPTransport, Request, Response

__version__ = "0.1.0"

RETRIES = 2
FIRST_PAUSE = 0.2  # seconds, doubled for each retry
MAX_RETRY_AFTER = 10.0  # seconds
DAY = 86_400.0  # seconds
MAX_WAIT = 20  # seconds that the service holds one call of wait
GRACE = 0.5  # seconds that the last answer of wait may be late
RETRIED = {429, 500, 502, 503, 504}
FINAL = {"VERIFIED", "EXPIRED"}

A = TypeVar("A", bound=Answer)


class PhoneProof:
    """A client of one project. Its methods raise PhoneProofError.

    A call is tried three times if the connection fails, no answer comes in time, or the service is busy.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 10.0,
        transport: Callable[[Request], Response] | None = None,
    ) -> None:
        """timeout is in seconds, for each try. transport sends the requests in place of an HTTPTransport."""
        self._base_url = _check_base_url(base_url)
        if not isinstance(api_key, str) or not _is_plain(api_key):
            raise PhoneProofError("invalid_api_key", "The API key must be ASCII without spaces.")
        if not timeout > 0:
            raise PhoneProofError("invalid_argument", "timeout must be more than 0 seconds.", field="timeout")
        self.__authorization = _Hidden(f"Bearer {api_key}")
        self._timeout = timeout
        self._deadline = math.inf  # of all tries of a call
        self._transport = transport or HTTPTransport()
        self._cancellation = Cancellation()  # only AsyncPhoneProof cancels

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r})"

    def start(
        self,
        phone_number: str,
        *,
        method: str | None = None,
        subject: str | None = None,
        reference: str | None = None,
        metadata: dict[str, str] | None = None,
        locale: str | None = None,
        return_url: str | None = None,
        assurance: str | None = None,
        purpose: str | None = None,
        browser: str | None = None,
        deliver: str | None = None,
        idempotency_key: str | None = None,
    ) -> Started:
        """Starts a verification and returns the links that lead the user to it.

        The fields are those of init in openapi.json. Another call with the same idempotency_key starts no other
        verification. Raises CodesUnsupportedError for deliver="CODE" if the service is too old to send codes.
        """
        fields = _name_fields(locals())
        if idempotency_key is None:
            idempotency_key = "once_" + base64.b32encode(secrets.token_bytes(17))[:26].decode().lower()
        started = self._call(Started, "POST", "/api/verify/init", fields, idempotency_key=idempotency_key)
        if deliver == "CODE" and started.code_length is None:
            raise CodesUnsupportedError("codes_unsupported", "The service is too old to send codes.", status=200)
        return started

    def deliver(
        self,
        phone_number: str,
        code: str,
        *,
        method: str | None = None,
        locale: str | None = None,
        subject: str | None = None,
        idempotency_key: str | None = None,
    ) -> Delivered:
        """Has a code that you made sent to a number; you check it. It is stored now and sent then: see get(delivery_id).

        Without an idempotency_key, the service knows a repetition by the number and the code.
        """
        return self._call(Delivered, "POST", "/api/verify/deliver", _name_fields(locals()), idempotency_key=idempotency_key)

    def status(self, request_id: str, *, wait: int = 0, hint: str | None = None) -> Status:
        """Returns where a verification stands.

        wait has the service hold the answer while the status is PENDING, for 0 to 30 whole seconds. With hint, that of the
        status before and "" for none, another hint ends the wait, too.
        """
        query = {"id": _check_id(request_id), "wait": f"{wait}s" if wait else None, "hint": hint}
        return self._call(Status, "GET", "/api/verify/status" + _encode_query(query), hold=wait)

    def wait(self, request_id: str, *, timeout: float = math.inf) -> Status:
        """Returns the status as soon as it is VERIFIED or EXPIRED, or after timeout seconds the last one.

        Raises timed_out if none came until then.
        """
        deadline = time.monotonic() + timeout
        limited = copy.copy(self)
        limited._deadline = deadline + GRACE
        status: Status | None = None
        while True:
            asked = time.monotonic()
            try:
                status = limited.status(request_id, wait=math.floor(min(max(deadline - asked, 0), MAX_WAIT)))
            except PhoneProofError:
                if status is None or time.monotonic() < deadline:
                    raise
            if status.status in FINAL:
                return status
            # A service that is full answers at once, and is asked once a second.
            self._cancellation.sleep(min(asked + 1, deadline) - time.monotonic())
            if time.monotonic() >= deadline:
                return status

    def confirm(self, request_id: str, code: str) -> Status:
        """Redeems a code for the request that the user's own session began; SessionProof keeps that rule.

        If the answer is lost the status decides, because a code that is sent again may count twice. Raises
        AlreadyConfirmedError if one was redeemed before.
        """
        fields = {"requestId": _check_id(request_id), "code": code}
        try:
            return self._call(Status, "POST", "/api/verify/confirm", fields, is_repeatable=False)
        except PhoneProofError as error:
            if is_definite(error):
                raise
            with contextlib.suppress(PhoneProofError):
                status = self.status(request_id)
                if status.status == "VERIFIED":
                    return status
            raise

    def cancel(self, request_id: str) -> Status:
        """Ends a pending verification, and returns its status: EXPIRED."""
        return self._call(Status, "POST", "/api/verify/cancel", {"requestId": _check_id(request_id)})

    def redeliver(self, request_id: str) -> StoredRequest:
        """Sends the event of a verification that has ended once more."""
        return self._call(StoredRequest, "POST", "/api/verify/redeliver", {"requestId": _check_id(request_id)})

    def get(self, request_id: str) -> StoredRequest:
        """Returns a verification with the attempts to deliver its events."""
        return self._call(StoredRequest, "GET", "/api/verify/requests/" + quote(_check_id(request_id), safe=""))

    def list(
        self,
        *,
        status: str | None = None,
        reference: str | None = None,
        kind: str | None = None,
        since: datetime | str | None = None,
        limit: int | None = None,
    ) -> Iterator[StoredRequest]:
        """Returns the verifications of the project, newest first; with the kind DELIVERY, what deliver stored.

        limit is how many one call fetches, 1 to 200.
        """
        query = {**_name_fields(locals()), "since": _format_time(since)}
        path = "/api/verify/requests"
        return _follow(lambda cursor: self._call(RequestPage, "GET", path + _encode_query({**query, "cursor": cursor})))

    def find(
        self,
        phone_number: str,
        *,
        status: str | None = None,
        kind: str | None = None,
        since: datetime | str | None = None,
        limit: int | None = None,
    ) -> Iterator[StoredRequest]:
        """Returns the verifications of a phone number, newest first, as list does."""
        fields = {**_name_fields(locals()), "since": _format_time(since)}
        path = "/api/verify/requests/find"
        return _follow(lambda cursor: self._call(RequestPage, "POST", path, {**fields, "cursor": cursor}))

    def openapi(self) -> OpenAPI:
        """Returns the description of the service's API."""
        return self._call(OpenAPI, "GET", "/openapi.json")

    def _bind(self, cancellation: Cancellation) -> PhoneProof:
        """Returns the same client, whose calls the cancellation ends."""
        bound = copy.copy(self)
        bound._cancellation = cancellation
        return bound

    def _call(
        self,
        kind: type[A],
        method: str,
        target: str,
        fields: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        hold: int = 0,
        is_repeatable: bool = True,
    ) -> A:
        """Returns the answer, after up to RETRIES retries; if it is not repeatable, only of what was surely not carried out."""
        sent = {
            "Authorization": self.__authorization,
            "User-Agent": f"phoneproof-python/{__version__}",
            "Connection": "close",
        }
        if idempotency_key is not None:
            if not _is_plain(idempotency_key):
                raise PhoneProofError("invalid_argument", "The key must be ASCII without spaces.", field="Idempotency-Key")
            sent["Idempotency-Key"] = idempotency_key
        body = None
        if fields is not None:
            sent["Content-Type"] = "application/json"
            body = json.dumps({name: value for name, value in fields.items() if value is not None}).encode()
        attempt = 0
        while True:
            left = min(hold + self._timeout, self._deadline - time.monotonic())
            try:
                return self._send(kind, Request(method, self._base_url + target, sent, body, left, self._cancellation))
            except PhoneProofError as error:
                if attempt == RETRIES or not _may_help(error) or not (is_repeatable or is_definite(error)):
                    raise
                pause = max(error.retry_after or 0.0, random.uniform(0, FIRST_PAUSE * 2**attempt))
            self._cancellation.sleep(min(pause, self._deadline - time.monotonic()))
            attempt += 1

    def _send(self, kind: type[A], request: Request) -> A:
        """Makes one try."""
        try:
            if request.timeout <= 0:
                raise TimeoutError
            response = self._transport(request)
        except TimeoutError as cause:
            raise PhoneProofError("timed_out", f"No answer came within {request.timeout:g} seconds.") from cause
        except (OSError, UnicodeError, http.client.HTTPException) as cause:  # UnicodeError: the host has a wrong label
            raise PhoneProofError("connection_failed", f"The connection failed: {cause!r}") from cause
        return _read_answer(kind, response)


def _may_help(error: PhoneProofError) -> bool:
    """Reports whether a retry may help against the error."""
    if error.code == "codes_limited" or error.rate_limit == "declined" or (error.retry_after or 0) > MAX_RETRY_AFTER:
        return False
    return error.status in RETRIED or error.code in {"connection_failed", "timed_out"}


def is_definite(error: Exception) -> bool:
    """Reports whether the service itself answered, and did not carry out what it was asked for."""
    if not isinstance(error, PhoneProofError) or error.code in {"unexpected_answer", "store_unavailable"}:
        return False
    return 300 <= error.status < 500 or error.status == 503


class _Hidden(str):
    """A text that dumps of variables do not show."""

    def __repr__(self) -> str:
        return "'(hidden)'"


def _is_plain(text: str) -> bool:
    """Reports whether a text has visible characters of ASCII alone, and at least one."""
    return bool(text) and all("!" <= sign <= "~" for sign in text)


def _check_base_url(base_url: str) -> str:
    """Returns the URL without slashes at the end."""
    try:
        if _is_plain(base_url) and not set(base_url) & set("?#@\\"):
            url = urlsplit(base_url)
            if url.scheme in {"http", "https"} and url.hostname and url.port != 0:
                return base_url.rstrip("/")
    except (TypeError, ValueError):  # no string, or no port
        pass
    raise PhoneProofError("invalid_base_url", "The base URL has http:// or https://, a host, and perhaps a path.")


def _check_id(request_id: str) -> str:
    if not request_id:
        raise PhoneProofError("invalid_argument", "The id of the request is empty.", field="requestId")
    return request_id


def _follow(fetch: Callable[[str | None], RequestPage]) -> Iterator[StoredRequest]:
    """Returns the requests of all pages, each of which is fetched when it is needed."""
    page = fetch(None)
    yield from page.requests
    while page.next_cursor:
        page = fetch(page.next_cursor)
        yield from page.requests


def _name_fields(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a method by the names of the API."""
    return {wire_name(name): value for name, value in arguments.items() if name not in {"self", "idempotency_key"}}


def _encode_query(query: Mapping[str, Any]) -> str:
    present = {name: value for name, value in query.items() if value is not None}
    return "?" + urlencode(present) if present else ""


def _format_time(time: datetime | str | None) -> str | None:
    """Returns a time as the service reads it."""
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise PhoneProofError("invalid_argument", "A datetime needs a time zone.", field="since")
    return time.astimezone(timezone.utc).isoformat()


def _parse_retry_after(value: str) -> float:
    """Returns seconds: a day at most, also for what is neither a number nor a date."""
    try:
        seconds = float(value) if value.isdigit() else email.utils.parsedate_to_datetime(value).timestamp() - time.time()
    except (TypeError, ValueError):
        seconds = DAY
    return min(max(seconds, 0.0), DAY)


def _read_answer(kind: type[A], response: Response) -> A:
    """Returns the answer. Raises PhoneProofError if it is another one, or an error of the service."""
    headers = response.headers
    details: dict[str, Any] = {
        "status": response.status,
        "http_request_id": headers.get("x-request-id"),
        "retry_after": _parse_retry_after(headers["retry-after"]) if headers.get("retry-after") else None,
        "rate_limit": headers["ratelimit"].partition(";")[0].strip('"') if "ratelimit" in headers else None,
    }
    if 300 <= response.status < 400:
        raise PhoneProofError("redirected", "Redirects are not followed.", **details)
    try:
        content = parse_object(response.body, MAX_ANSWER)
        if response.status < 300:
            return kind(content)
        error = ErrorBody(content["error"])
    except (KeyError, TypeError, ValueError) as cause:
        message = f"This is no answer of PhoneProof, perhaps of a proxy: {cause}."
        raise PhoneProofError("unexpected_answer", message, **details) from cause
    of = AlreadyConfirmedError if error.code == "already_confirmed" else PhoneProofError
    raise of(error.code, error.message, reason=error.reason, field=error.field, **details)
