"""A website whose visitors verify a phone number at the level Session. It uses the standard library alone.

The id of a request stays in the session that began it. A code that a browser brings is redeemed for that request, and for no other.
"""

import html
import json
import os
import re
import secrets
import urllib.error
import urllib.parse
import urllib.request
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = os.environ.get("ADDRESS", "127.0.0.1:8000")
ORIGIN = os.environ.get("ORIGIN", f"http://{ADDRESS}")
API = os.environ.get("PHONEPROOF_URL", "http://127.0.0.1:8080")
KEY = os.environ["PHONEPROOF_KEY"]
COOKIE = "__Host-session" if ORIGIN.startswith("https:") else "session"

sessions = {}  # what the website knows of each browser, by the value of its cookie

TEXTS = {  # what visitors read, by the reason or the code of an error; its message is for developers
    "no_country_code": "Begin with the country code, such as +49.",
    "unknown_country_code": "Begin with the country code, such as +49.",
    "invalid_phone_number": "This number cannot be verified. Is it complete?",
    "not_proven": "Send the message from your phone first.",
    "invalid_code": "Enter the six digits from the chat, or the eight of a code that was sent.",
    "wrong_code": "These digits are wrong.",
    "request_expired": "This has ended. Begin again.",
}


def choose_text(answer):
    error = answer.get("error", {})
    return TEXTS.get(error.get("reason")) or TEXTS.get(error.get("code")) or "Try again later."


def call(operation, body=None):
    """Returns the answer of the API. An OSError or ValueError means that it is not known what became of the call."""
    request = urllib.request.Request(
        f"{API}/api/verify/{operation}", data=body and json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as refused:
        return json.load(refused)


class Site(BaseHTTPRequestHandler):
    timeout = 15

    def start(self, _, form):
        typed = form.get("number", "")
        begun = call("init", {"phoneNumber": typed, "assurance": "SESSION", "purpose": "sign-in",
                              "returnURL": f"{ORIGIN}/return"})
        if "requestId" not in begun:
            return self.show(400, choose_text(begun))
        # The request is in no form and comes from no URL. /me has the whole number beside the link to the page.
        self.redirect("/me", {"request": begun["requestId"], "typed": typed, "page": begun["pageURL"]})

    def come_back(self, session, query):  # a code does not count in a browser whose session did not begin that request
        if "request" not in session or session["request"] != query.get("requestId") or "code" not in query:
            return self.redirect("/me")
        self.redeem(session, query["code"])

    def digits(self, session, form):
        if "request" not in session:
            return self.redirect("/me")
        self.redeem(session, form.get("code", ""))

    def redeem(self, session, code):
        result = call("confirm", {"requestId": session["request"], "code": code})
        if result.get("error", {}).get("code") == "already_confirmed":
            # By this session, whose answer was lost: no other one knows the request.
            result = call("status?id=" + urllib.parse.quote(session["request"]))
        if result.get("status") != "VERIFIED" or result.get("assurance") != "session":
            return self.show(422, choose_text(result))
        session["number"] = result["phoneNumber"]
        self.redirect("/me")

    def me(self, session, _):
        if "number" in session:
            return self.show(200, "Verified: " + session["number"])
        if "page" not in session:
            return self.show(401, "Not verified.")
        link = f'<p><a href="{html.escape(session["page"])}">Verify it</a></p>'  # the page shows two digits of the number
        self.show(401, "Not verified. Your number: " + session["typed"], link)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        self.serve({"/": Site.me, "/me": Site.me, "/return": Site.come_back}.get(path), query)

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,4}", length):
            return self.show(413, "The form is too large.")
        form = self.rfile.read(int(length)).decode(errors="replace")
        if self.headers.get("Origin") != ORIGIN:  # which browsers name in each POST: it is a form of another site
            return self.show(403, f"Send this form from {ORIGIN}.")
        self.serve({"/start": Site.start, "/digits": Site.digits}.get(self.path), form)

    def serve(self, route, form):
        if route is None:
            return self.show(404, "Not found.")
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
            route(self, sessions.get(cookie and cookie.value, {}), dict(urllib.parse.parse_qsl(form)))
        except (CookieError, OSError, ValueError):
            self.show(502, "Try again.")

    def redirect(self, location, new_session=None):
        self.send_response(303)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        if new_session:  # one for each verification
            value = secrets.token_urlsafe()
            sessions[value] = new_session
            secure = "; Secure" if ORIGIN.startswith("https:") else ""
            self.send_header("Set-Cookie", f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Lax{secure}")
        self.end_headers()

    def show(self, status, message, more=""):
        body = f"<!doctype html><title>Shop</title><p>{html.escape(message)}</p>{more}{FORMS}".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Referrer-Policy", "strict-origin")  # the address may hold a code; with no-referrer Origin would be null
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Logs nothing, because the address may hold a code."""


FORMS = """<form method="post" action="/start"><label>Phone number <input name="number" type="tel"></label>
<button>Verify</button></form>
<form method="post" action="/digits"><label>Six or eight digits
<input name="code" inputmode="numeric" autocomplete="one-time-code"></label> <button>Confirm</button></form>"""

if __name__ == "__main__":
    host, port = ADDRESS.split(":")
    ThreadingHTTPServer((host, int(port)), Site).serve_forever()
