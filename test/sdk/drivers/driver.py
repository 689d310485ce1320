"""Calls the Python library for the tests: one operation a line of JSON on stdin, one answer a line on stdout."""

import asyncio
import base64
import concurrent.futures
import contextlib
import io
import itertools
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import phoneproof

KINDS = {
    phoneproof.AlreadyConfirmedError: "AlreadyConfirmed",
    phoneproof.CodesUnsupportedError: "CodesUnsupported",
    phoneproof.SignatureError: "Signature",
    phoneproof.SessionError: "Session",
}
START = {"phoneNumber": "phone_number", "returnURL": "return_url"}


class Store(dict):
    """Keeps the states of sessions."""

    load = dict.get
    save = dict.__setitem__

    def remove(self, session_id):
        self.pop(session_id, None)


class Seen(set):
    """Remembers events."""

    has = set.__contains__


class Driver:
    def __init__(self):
        self.clients, self.asynchronous, self.store = {}, {}, Store()
        self.threads, self.background = concurrent.futures.ThreadPoolExecutor(), None  # the operation of later
        self.bodies = set()  # the digests that receive has seen
        self.received, self.tests, self.failed = [], [], set()

    def client_of(self, args):
        return self.clients[args.pop("client", "c")]

    def asynchronous_of(self, client):
        return next(self.asynchronous[name] for name, other in self.clients.items() if other is client)

    def client(self, name="c", baseURL="", apiKey="", timeout=10.0):
        client = phoneproof.PhoneProof(baseURL, apiKey, timeout=timeout)
        asynchronous = phoneproof.AsyncPhoneProof(baseURL, apiKey, timeout=timeout)
        self.clients[name], self.asynchronous[name] = client, asynchronous
        return {"text": "\n".join([str(client), repr(client), repr(vars(client)), str(asynchronous), repr(vars(asynchronous))])}

    def start(self, client, params, idempotencyKey=None):
        return client.start(**rename(params), idempotency_key=idempotencyKey)

    def deliver(self, client, delivery, idempotencyKey=None):
        return client.deliver(**rename(delivery), idempotency_key=idempotencyKey)

    def list(self, client, max=None, **filters):
        return list(itertools.islice(client.list(**filters), max))

    def find(self, client, phoneNumber, max=None, **filters):
        async def run():
            found = []
            async for request in self.asynchronous_of(client).find(phoneNumber, **filters):
                found.append(request)
                if len(found) == max:
                    break
            return found

        return asyncio.run(run())

    def openapi(self, client):
        return {"openapi": client.openapi()["openapi"]}

    def wait_cancel(self, id, after, client="c"):
        async def run():
            task = asyncio.create_task(self.asynchronous[client].wait(id))
            await asyncio.sleep(after)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                return {"cancelled": False, "status": await task}
            return {"cancelled": True}

        return asyncio.run(run())

    def receive(self, headers, body, secrets=(), testSecrets=(), tolerance=300, now=None, bodySignature=False, **form):
        raw = base64.b64decode(body)
        if form.get("as", "bytes") != "bytes":
            raw = raw.decode() if form["as"] == "string" else json.loads(raw)
        return phoneproof.receive(
            headers, raw, secrets=secrets, test_secrets=testSecrets, tolerance=tolerance,
            body_signature=self.is_seen if bodySignature else None, now=(lambda: now) if now else time.time)  # fmt: skip

    def is_seen(self, digest):
        was_seen = digest in self.bodies
        self.bodies.add(digest)
        return was_seen

    def serve(self, handler, secrets=(), testSecrets=(), bodySignature=False):
        self.received, self.tests, self.failed = [], [], set()
        options = {"on_event": self.on_event, "on_test": self.tests.append, "secrets": secrets, "test_secrets": testSecrets, "seen": Seen()}
        if handler == "asgi":
            options["on_event"] = lambda event: self.on_event_later(event)  # a plain function whose result is awaited
        make_app = {"wsgi": phoneproof.wsgi_app, "asgi": phoneproof.asgi_app}[handler]
        server = make_server(make_app(**options, body_signature=bodySignature), is_asgi=handler == "asgi")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return {"port": server.server_port}

    def on_event(self, event):
        if event.get("reference") == "fail" and event.webhook_id not in self.failed:
            self.failed.add(event.webhook_id)
            raise RuntimeError("the callback fails")
        self.received.append(event)

    async def on_event_later(self, event):
        self.on_event(event)

    def begin(self, client, session, params):
        return phoneproof.SessionProof(client, self.store).begin(session, **rename(params))

    def redeem(self, client, session, code, newSession, returned=...):
        proof = phoneproof.SessionProof(client, self.store)
        return proof.redeem(session, code, new_session_id=newSession, returned_request_id=returned or None)

    def verified(self, client, session):
        proof = phoneproof.AsyncSessionProof(self.asynchronous_of(client), self.store)
        return asyncio.run(proof.verified(session))

    def do(self, op, args):
        match op:
            case "status" | "confirm" | "cancel" | "get" | "redeliver" | "wait":
                client = self.client_of(args)
                return getattr(client, op)(args.pop("id"), **args)
            case "start" | "deliver" | "list" | "find" | "openapi" | "begin" | "redeem" | "verified":
                client = self.client_of(args)
                return getattr(self, op)(client, **args)
            case "waitCancel":
                return self.wait_cancel(**args)
            case "client" | "receive" | "serve":
                return getattr(self, op)(**args)
            case "later":
                self.background = self.threads.submit(self.do, args["op"], args["args"])
            case "join":
                return self.background.result()
            case "events":
                return {"events": self.received, "tests": self.tests}
            case _:
                raise ValueError(f"no operation {op}")
        return {}


def make_server(app, is_asgi):
    """Returns a server of an application. A body may come in chunks."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            is_chunked = self.headers.get("Transfer-Encoding") == "chunked"
            body = self.read_chunks() if is_chunked else self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if is_asgi:
                asyncio.run(self.run_asgi(io.BytesIO(body)))
            else:
                self.run_wsgi(io.BytesIO(body), is_chunked)

        do_GET = do_POST

        def read_chunks(self):
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def run_wsgi(self, body, is_chunked):
            environ = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in self.headers.items()}
            environ |= {"REQUEST_METHOD": self.command, "wsgi.input": body, "wsgi.input_terminated": is_chunked}
            environ["CONTENT_LENGTH"] = environ.pop("HTTP_CONTENT_LENGTH", "")
            answer = app(environ, lambda status, headers: self.begin(int(status[:3]), headers))
            self.wfile.write(b"".join(answer))

        async def run_asgi(self, body):
            async def receive():
                part = body.read(1000)
                return {"type": "http.request", "body": part, "more_body": len(part) == 1000}

            async def send(message):
                if message["type"] == "http.response.start":
                    self.begin(message["status"], [(name.decode(), value.decode()) for name, value in message["headers"]])
                else:
                    self.wfile.write(message["body"])

            headers = [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
            await app({"type": "http", "method": self.command, "headers": headers}, receive, send)

        def begin(self, status, headers):
            self.send_response(status)
            for name, value in [*headers, ("Connection", "close")]:
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_):
            """Logs nothing."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def rename(params):
    return {START.get(name, name): value for name, value in params.items()}


def describe(error):
    return {
        "code": error.code, "reason": error.reason or "", "field": error.field or "", "status": error.status,
        "httpRequestId": error.http_request_id or "", "retryAfter": error.retry_after or 0, "kind": KINDS.get(type(error), ""),
        "text": str(error) + repr(error),
    }  # fmt: skip


def main():
    driver = Driver()
    for line in sys.stdin:
        call = json.loads(line)
        try:
            answer = {"ok": driver.do(call["op"], call.get("args", {}))}
        except phoneproof.PhoneProofError as error:
            answer = {"error": describe(error)}
        print(json.dumps({"id": call["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
