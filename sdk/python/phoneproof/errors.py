"""The errors of this library. All are a PhoneProofError, and its code says what went wrong."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(eq=False, repr=False)
class PhoneProofError(Exception):
    """What the service answered, or what this library found wrong.

    Decide by `code`. Codes of the service are in its openapi.json; those of this library are `invalid_base_url`, `invalid_api_key`,
    `invalid_argument`, `connection_failed`, `timed_out`, `unexpected_answer` and `redirected`, and those of the subclasses.
    The message is for developers: show your users words of your own.
    """

    code: str
    message: str
    _: KW_ONLY
    reason: str | None = None  # what is wrong with a phone number
    field: str | None = None  # the field, query parameter or header at fault
    status: int = 0  # of the HTTP answer, 0 without one
    http_request_id: str | None = None  # X-Request-Id of the answer, which the service's log has, too
    retry_after: float | None = None  # seconds to wait before trying again
    rate_limit: str | None = None  # the name in RateLimit, such as key, phoneNumber or declined

    def __str__(self) -> str:
        details = [f"HTTP {self.status}"] if self.status else []
        if self.http_request_id:
            details.append(f"X-Request-Id {self.http_request_id}")
        return f"{self.code}: {self.message}" + (f" ({', '.join(details)})" if details else "")


class AlreadyConfirmedError(PhoneProofError):
    """A code of the request was redeemed before: `already_confirmed`. It is no success; SessionProof knows the exception."""


class CodesUnsupportedError(PhoneProofError):
    """`codes_unsupported`: the service is older than deliver="CODE", so it sent no code."""


class SignatureError(PhoneProofError):
    """A webhook that does not count: `missing_signature`, `invalid_signature`, `stale_timestamp` or `already_seen`."""


class SessionError(PhoneProofError):
    """A code that does not count in this session: `no_request`, `other_request`, `session_id_not_new` or `not_verified`."""
