"""Verifies phone numbers with PhoneProof.

    import phoneproof

    client = phoneproof.PhoneProof("https://verify.example.com", api_key)
    started = client.start("+4915112345678")
    print("Open", started.wa_link)
    print(client.wait(started.request_id, timeout=300).status)

It needs the standard library alone, and is safe for use from several threads.
"""

from phoneproof._version import __version__
from phoneproof.aio import AsyncPhoneProof, AsyncSessionProof
from phoneproof.answers import (
    Answer,
    Delivery,
    DeliveryAttempt,
    Event,
    OpenAPI,
    Started,
    Status,
    StoredRequest,
    VerificationAttention,
    VerificationDeclined,
    VerificationExpired,
    VerificationSuccess,
)
from phoneproof.client import PhoneProof
from phoneproof.errors import AlreadyConfirmedError, CodesUnsupportedError, PhoneProofError, SessionError, SignatureError
from phoneproof.session import SessionProof, SessionStore
from phoneproof.transport import HTTPTransport, Request, Response
from phoneproof.webhooks import SeenEvents, asgi_app, receive, wsgi_app

__all__ = [
    "AlreadyConfirmedError",
    "Answer",
    "AsyncPhoneProof",
    "AsyncSessionProof",
    "CodesUnsupportedError",
    "Delivery",
    "DeliveryAttempt",
    "Event",
    "HTTPTransport",
    "OpenAPI",
    "PhoneProof",
    "PhoneProofError",
    "Request",
    "Response",
    "SeenEvents",
    "SessionError",
    "SessionProof",
    "SessionStore",
    "SignatureError",
    "Started",
    "Status",
    "StoredRequest",
    "VerificationAttention",
    "VerificationDeclined",
    "VerificationExpired",
    "VerificationSuccess",
    "__version__",
    "asgi_app",
    "receive",
    "wsgi_app",
]
