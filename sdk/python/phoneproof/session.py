"""The rules of session proof: a code counts in the session that began the request, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Collection
from types import EllipsisType
from typing import Any, Protocol

from phoneproof.answers import Started, Status
from phoneproof.client import PhoneProof, is_definite
from phoneproof.errors import PhoneProofError, SessionError
from phoneproof.transport import Cancelled

# Refusals which show that a code whose answer was lost was not redeemed either.
SETTLED = {"already_confirmed", "wrong_code", "not_proven", "request_expired", "confirmation_not_needed", "request_not_found"}


class SessionStore(Protocol):
    """Keeps a text for each session of your website, on your server and for as long as the session lives."""

    def load(self, session_id: str) -> str | None: ...

    def save(self, session_id: str, state: str) -> None: ...

    def remove(self, session_id: str) -> None: ...


class SessionProof:
    """Verifies phone numbers for the sessions of a website.

    The id of a request comes from the session's state alone. Its methods raise SessionError and PhoneProofError.
    """

    def __init__(self, client: PhoneProof, store: SessionStore, *, accept: Collection[str] = ()) -> None:
        """accept lists further assurances than session, which are weaker: see openapi.json."""
        self._client = client
        self._store = store
        self._accept = {"session", *accept}

    def begin(self, /, session_id: str, phone_number: str, **params: Any) -> Started:
        """Starts a verification for the session, in place of one that it began before. params are those of PhoneProof.start."""
        if not session_id:
            raise PhoneProofError("invalid_argument", "The session needs an id.", field="session_id")
        level = {"assurance": None if params.get("deliver") else "SESSION"}  # deliver implies it
        started = self._client.start(phone_number, **{**params, **level})
        self._save(session_id, {"request": started.request_id, "lost": False})
        return started

    def redeem(
        self, session_id: str, code: str, *, new_session_id: str, returned_request_id: str | EllipsisType | None = ...
    ) -> Status:
        """Redeems what the user typed, or what came with the return, and moves the session to new_session_id.

        new_session_id is a fresh random value: give it to the browser once this has returned.
        returned_request_id is the requestId of the return's query, None if it has none; leave it out for typed digits. Raises
        SessionError for a code of another session, and if the number was verified with another assurance.
        """
        if not new_session_id or new_session_id == session_id:
            raise SessionError("session_id_not_new", "A verified session needs a new id.")
        state = self._load_open(session_id)
        request = state["request"]
        if returned_request_id is not ... and returned_request_id != request:
            raise SessionError("other_request", "This code belongs to a request of another session.")
        status = self._confirm(session_id, request, code, state["lost"])
        if status.status != "VERIFIED" or status.assurance not in self._accept:
            raise SessionError("not_verified", f"The status is {status.status}, with assurance {status.assurance}.")
        self._load_open(session_id, request)
        self._save(new_session_id, {"request": request, "verified": status.phone_number})
        self._store.remove(session_id)
        return status

    def verified(self, session_id: str) -> str | None:
        """Returns the phone number that the session verified, in E.164 form, or None."""
        number: str | None = self._load(session_id).get("verified")
        return number

    def _confirm(self, session_id: str, request: str, digits: str, was_lost: bool) -> Status:
        """Confirms. was_lost is whether an earlier confirm got no answer."""
        try:
            return self._client.confirm(request, digits)
        except (PhoneProofError, Cancelled) as error:
            code = getattr(error, "code", "")
            # Not while a confirm is under way: it may be that of another browser, which has the same session.
            if was_lost and code == "already_confirmed":
                status = self._client.status(request)
                if status.status == "VERIFIED":
                    return status
            is_lost = not is_definite(error) or (was_lost and code not in SETTLED)
            if is_lost != was_lost:
                self._load_open(session_id, request)
                self._save(session_id, {"request": request, "lost": is_lost})
            raise

    def _load_open(self, session_id: str, request: str | None = None) -> dict[str, Any]:
        """Returns the state of a session that has a request to redeem, the given one if any.

        After a confirm it is called again: another browser with the same session may have redeemed it, or begun another.
        """
        state = self._load(session_id)
        if "lost" not in state or request not in {None, state["request"]}:
            raise SessionError("no_request", "This session has no such verification open.")
        return state

    def _load(self, session_id: str) -> dict[str, Any]:
        text = self._store.load(session_id) if session_id else None
        state: dict[str, Any] = json.loads(text) if text else {}
        return state

    def _save(self, session_id: str, state: dict[str, Any]) -> None:
        self._store.save(session_id, json.dumps(state))
