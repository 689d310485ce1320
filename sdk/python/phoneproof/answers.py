"""The answers and events of the service: dicts of their JSON, whose fields are attributes, too."""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any


class Answer(dict[str, Any]):
    """A JSON object as the service wrote it, unknown fields included.

    Its fields are attributes in snake_case: answer.phone_number is answer["phoneNumber"]. There times are aware datetimes, and
    an optional field that is absent is None.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Raises a ValueError if a known field is missing or has another type."""
        super().__init__(values)
        for name in _fields(type(self)):
            getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        key = wire_name(name)
        hint = _fields(type(self)).get(name)
        if hint is None:
            if key in self and not name.startswith("_"):
                return self[key]
            raise AttributeError(f"{type(self).__name__} has no field {key}")
        return _convert(self.get(key), hint, key)


class Started(Answer):
    """What start answers. Lead the user to page_url, else to wa_link or tg_link; log none of them, nor expected_text."""

    request_id: str
    wa_link: str | None
    tg_link: str | None
    expected_text: str
    page_url: str | None
    expires_in: timedelta
    expires_at: datetime
    code_length: int | None
    test: bool | None


class Delivered(Answer):
    """What deliver answers: the id that get knows it by."""

    delivery_id: str
    test: bool | None


class Status(Answer):
    """Where a verification stands: status is PENDING, VERIFIED or EXPIRED."""

    status: str
    phone_number: str
    expires_at: datetime
    method: str | None
    verified_at: datetime | None
    actual_phone_number: str | None
    assurance: str | None
    via: str | None
    code_delivery: str | None
    hint: str | None
    reference: str | None
    metadata: dict[str, str] | None
    test: bool | None


class Delivery(Answer):
    """How far the event of a request is: state is WAITING, DELIVERED or EXHAUSTED."""

    state: str
    attempts: int
    next_attempt_at: datetime | None
    delivered_at: datetime | None


class DeliveryAttempt(Answer):
    """One attempt to deliver an event."""

    at: datetime
    event: str
    status_code: int | None
    reason: str | None


class StoredRequest(Status):
    """A verification as the project stores it."""

    request_id: str
    kind: str | None  # DELIVERY for what deliver stored
    method: str
    created_at: datetime
    locale: str | None
    api_key: str | None  # the name of the key that started it
    code_reason: str | None
    delivery: Delivery | None
    attempts: list[DeliveryAttempt] | None


class RequestPage(Answer):
    """A page of list and find."""

    requests: list[StoredRequest]
    next_cursor: str | None


class ErrorBody(Answer):
    """What is wrong with a call."""

    code: str
    message: str
    reason: str | None
    field: str | None


class OpenAPI(Answer):
    """The description of an API."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]


class Event(Answer):
    """An event of a webhook. Kinds that this library does not know are of this class, with all their fields."""

    webhook_id: str  # the same whenever the event is sent
    event: str
    timestamp: datetime | None

    def __init__(self, values: Mapping[str, Any], webhook_id: str) -> None:
        """Raises a ValueError if there is no kind of event. Other fields are looked at when they are read."""
        dict.__init__(self, values)
        self.webhook_id = webhook_id
        self.is_test = self.event.startswith("test.")


class _KnownEvent(Event):
    phone_number: str
    request_id: str
    project_id: str
    method: str
    timestamp: datetime
    reference: str | None
    metadata: dict[str, str] | None
    test: bool | None


class VerificationSuccess(_KnownEvent):
    """The number was verified."""

    actual_phone_number: str
    assurance: str | None
    via: str | None


class VerificationExpired(_KnownEvent):
    """The time ran out, or the request was ended before."""

    hint: str | None


class VerificationDeclined(_KnownEvent):
    """The owner of the number answered "Not me"."""

    hint: str | None


class VerificationAttention(_KnownEvent):
    """A pending request waits for its user, for the reason in hint."""

    hint: str | None


def wire_name(name: str) -> str:
    """Returns the name of a field in JSON: returnURL for return_url."""
    first, *others = name.split("_")
    return first + "".join("URL" if word == "url" else word.capitalize() for word in others)


def parse_object(body: bytes, limit: int) -> dict[str, Any]:
    """Returns a JSON object of at most limit bytes. Raises ValueError for anything else."""
    if len(body) > limit:
        raise ValueError(f"it has more than {limit} bytes")
    try:
        parsed = json.loads(body.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise ValueError("it is no JSON object")
    return parsed


@functools.cache
def _fields(answer: type[Answer]) -> dict[str, Any]:
    """Returns the types of the fields, by the names of the attributes."""
    hints = typing.get_type_hints(answer)
    hints.pop("webhook_id", None)  # comes from a header
    return hints


def _convert(value: Any, hint: Any, key: str) -> Any:
    """Returns the value of a field as the type that its attribute has."""
    if isinstance(hint, types.UnionType):  # X | None
        return None if value is None else _convert(value, typing.get_args(hint)[0], key)
    kind = typing.get_origin(hint) or hint
    expected = {datetime: str, timedelta: str}.get(kind, dict if issubclass(kind, Answer) else kind)
    if not isinstance(value, expected) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{key} is missing or is no {expected.__name__}")
    if kind is datetime:
        time = datetime.fromisoformat(value.replace("Z", "+00:00"))
        if time.tzinfo is None:
            raise ValueError(f"{key} has no time zone")
        return time
    if kind is timedelta:
        return timedelta(seconds=float(value.removesuffix("s")))
    if kind is list:
        return [_convert(item, typing.get_args(hint)[0], key) for item in value]
    return kind(value) if issubclass(kind, Answer) else value
