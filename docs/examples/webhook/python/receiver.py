"""A receiver of webhooks. It uses the standard library alone, and runs on Python 3.9 or newer.

A folder stands for the table of your database in which webhook-id is unique: an event is stored in it once, and before it is acknowledged.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = os.environ.get("ADDRESS", "127.0.0.1:8000")
EVENTS = os.environ.get("EVENTS", "events")
TOLERANCE = 5 * 60  # seconds that webhook-timestamp may be off
KEPT = 7 * 24 * 3600  # seconds: an event is sent again for about three days


def decode_secret(secret):
    """Returns the key for HMAC. With an empty one, anyone could sign."""
    key = base64.b64decode(secret[6:], validate=True) if secret.startswith(b"whsec_") else secret
    if len(key) < 24:
        raise ValueError("WEBHOOK_SECRET needs 24 bytes or more")
    return key


KEY = decode_secret(os.fsencode(os.environ["WEBHOOK_SECRET"]))


def is_authentic(raw_body, headers, key):
    """Reports whether the body was signed within the last minutes. It raises no exception, whatever the headers are."""
    event_id, sent, presented = (headers.get(name) or "" for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    if not re.fullmatch("[0-9]{1,12}", sent) or abs(time.time() - int(sent)) > TOLERANCE:
        return False
    signed = f"{event_id}.{sent}.".encode(errors="replace") + raw_body
    want = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    # Bytes, because compare_digest raises a TypeError for text that is not ASCII.
    return any(hmac.compare_digest(want, part) for part in presented.encode(errors="replace").split(b" "))


class Receiver(BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if self.path != "/hooks/phone" or not re.fullmatch("[0-9]{1,5}", length):
            return self.answer(400)
        body = self.rfile.read(int(length))  # as it came: the signature is over these bytes
        if not is_authentic(body, self.headers, KEY):
            return self.answer(401)
        try:
            is_new = store_event(self.headers["webhook-id"], body)
        except OSError:
            return self.answer(500)  # the event is sent again
        self.answer(204)
        if is_new:
            do_work(body)  # after the answer

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Logs nothing."""


def store_event(event_id, body):
    """Stores an event that will outlive a crash, and reports whether it is new."""
    with tempfile.NamedTemporaryFile(dir=EVENTS) as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
        try:
            os.link(file.name, os.path.join(EVENTS, event_id + ".json"))  # fails if the event is there already
            is_new = True
        except FileExistsError:
            is_new = False
    folder = os.open(EVENTS, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    return is_new


def delete_old_events():
    while True:
        for file in os.scandir(EVENTS):
            with contextlib.suppress(OSError):  # such as a temporary file that is gone
                if time.time() - file.stat().st_mtime > KEPT:
                    os.remove(file)
        time.sleep(3600)


def do_work(body):
    """Stands for yours."""
    event = json.loads(body)
    print(event["event"], event["requestId"], flush=True)


if __name__ == "__main__":
    os.makedirs(EVENTS, exist_ok=True)
    threading.Thread(target=delete_old_events, daemon=True).start()
    host, port = ADDRESS.split(":")
    ThreadingHTTPServer((host, int(port)), Receiver).serve_forever()
