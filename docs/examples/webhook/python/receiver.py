"""A receiver of webhooks.

A folder stands for the table of your database in which webhook-id is unique: an event is stored in it once, and before it is acknowledged.
"""

import contextlib
import json
import os
import tempfile
import threading
import time
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import phoneproof

ADDRESS = os.environ.get("ADDRESS", "127.0.0.1:8000")
EVENTS = os.environ.get("EVENTS", "events")
KEPT = 7 * 24 * 3600  # seconds: an event is sent again for about three days


def store_event(event):
    """Stores an event that will outlive a crash, and has the work begin if it is new. An exception has it sent again."""
    with tempfile.NamedTemporaryFile(dir=EVENTS) as file:
        file.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode())
        file.flush()
        os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(file.name, os.path.join(EVENTS, event.webhook_id + ".json"))  # fails if the event is there already
            threading.Thread(target=do_work, args=[event]).start()
    folder = os.open(EVENTS, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def do_work(event):
    """Stands for yours."""
    print(event.event, event.request_id, flush=True)


def delete_old_events():
    while True:
        for file in os.scandir(EVENTS):
            with contextlib.suppress(OSError):  # such as a temporary file that is gone
                if time.time() - file.stat().st_mtime > KEPT:
                    os.remove(file)
        time.sleep(3600)


class Server(ThreadingMixIn, WSGIServer):
    """Serves each sender in a thread."""


if __name__ == "__main__":
    os.makedirs(EVENTS, exist_ok=True)
    threading.Thread(target=delete_old_events, daemon=True).start()
    host, port = ADDRESS.split(":")
    app = phoneproof.wsgi_app(on_event=store_event, secrets=[os.environ["WEBHOOK_SECRET"]])
    WSGIRequestHandler.log_message = lambda *_: None
    make_server(host, int(port), app, Server).serve_forever()
