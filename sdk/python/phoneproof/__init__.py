"""Verifies phone numbers with PhoneProof.

    import phoneproof

    client = phoneproof.PhoneProof("https://verify.example.com", api_key)
    started = client.start("+4915112345678")
    print("Open", started.wa_link)
    print(client.wait(started.request_id, timeout=300).status)

It needs the standard library alone, and is safe for use from several threads.
"""

from phoneproof.aio import AsyncPhoneProof as AsyncPhoneProof
from phoneproof.aio import AsyncSessionProof as AsyncSessionProof
from phoneproof.answers import Answer as Answer
from phoneproof.answers import Delivered as Delivered
from phoneproof.answers import Delivery as Delivery
from phoneproof.answers import DeliveryAttempt as DeliveryAttempt
from phoneproof.answers import Event as Event
from phoneproof.answers import OpenAPI as OpenAPI
from phoneproof.answers import Started as Started
from phoneproof.answers import Status as Status
from phoneproof.answers import StoredRequest as StoredRequest
from phoneproof.answers import VerificationAttention as VerificationAttention
from phoneproof.answers import VerificationDeclined as VerificationDeclined
from phoneproof.answers import VerificationExpired as VerificationExpired
from phoneproof.answers import VerificationSuccess as VerificationSuccess
from phoneproof.client import PhoneProof as PhoneProof
from phoneproof.client import __version__ as __version__
from phoneproof.errors import AlreadyConfirmedError as AlreadyConfirmedError
from phoneproof.errors import CodesUnsupportedError as CodesUnsupportedError
from phoneproof.errors import PhoneProofError as PhoneProofError
from phoneproof.errors import SessionError as SessionError
from phoneproof.errors import SignatureError as SignatureError
from phoneproof.session import SessionProof as SessionProof
from phoneproof.session import SessionStore as SessionStore
from phoneproof.transport import HTTPTransport as HTTPTransport
from phoneproof.transport import Request as Request
from phoneproof.transport import Response as Response
from phoneproof.webhooks import SeenEvents as SeenEvents
from phoneproof.webhooks import asgi_app as asgi_app
from phoneproof.webhooks import receive as receive
from phoneproof.webhooks import wsgi_app as wsgi_app
