"""A website whose visitors verify a phone number at the level Session. What it knows of a session is in memory."""

import html
import os
import secrets
from http.cookies import SimpleCookie
from socketserver import ThreadingMixIn
from types import SimpleNamespace
from urllib.parse import parse_qsl
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import phoneproof

ADDRESS = os.environ.get("ADDRESS", "127.0.0.1:8000")
ORIGIN = os.environ.get("ORIGIN", f"http://{ADDRESS}")
COOKIE, SECURE = ("__Host-session", "; Secure") if ORIGIN.startswith("https:") else ("session", "")
TEXTS = {"no_country_code": "Begin with the country code, such as +49.", "not_proven": "Send the message from your phone first.",
         "wrong_code": "These digits are wrong."}  # by the reason or the code of an error; docs/errors.md has all
PAGE = """<!doctype html><title>Shop</title><p>{}</p>{}<form method="post" action="/start">Phone number <input name="number" type="tel">
<button>Verify</button></form><form method="post" action="/digits">Six or eight digits <input name="code" autocomplete="one-time-code">
<button>Confirm</button></form>"""

client = phoneproof.PhoneProof(os.environ.get("PHONEPROOF_URL", "http://127.0.0.1:8080"), os.environ["PHONEPROOF_KEY"])
states, begun = {}, {}  # by session: what the library keeps; the number that was typed, and the link to its page
store = SimpleNamespace(load=states.get, save=states.__setitem__, remove=states.__delitem__)  # yours is a table
proof = phoneproof.SessionProof(client, store)


def site(environ, start_response):
    def answer(status, text="", more="", *headers):
        # The address may hold a code. With no-referrer Origin would be null.
        start_response(status, [("Content-Type", "text/html; charset=utf-8"), ("Referrer-Policy", "strict-origin"), *headers])
        return [PAGE.format(html.escape(text), more).encode()]

    is_post, cookie = environ["REQUEST_METHOD"] == "POST", SimpleCookie(environ.get("HTTP_COOKIE", "")).get(COOKIE)
    old, new = cookie.value if cookie else "", secrets.token_urlsafe()
    form = environ["wsgi.input"].read(min(abs(int(environ["CONTENT_LENGTH"] or 0)), 9999)) if is_post else b""
    fields = dict(parse_qsl(form.decode(errors="replace") or environ["QUERY_STRING"]))
    number, code = fields.get("number", ""), fields.get("code", "")
    if is_post and environ.get("HTTP_ORIGIN") != ORIGIN:  # which browsers name in each POST: it is a form of another site
        return answer("403 Forbidden", f"Send this form from {ORIGIN}.")
    try:
        match is_post, environ["PATH_INFO"]:
            case True, "/start":
                begun[new] = number, proof.begin(new, number, purpose="sign-in", return_url=f"{ORIGIN}/return").page_url
            case True, "/digits":
                proof.redeem(old, code, new_session_id=new)
            case False, "/return" if code:  # without one the user gave up
                proof.redeem(old, code, new_session_id=new, returned_request_id=fields.get("requestId", ""))
            case _:
                verified, (typed, page) = proof.verified(old), begun.get(old, ("", ""))
                link = page and f'<a href="{html.escape(page)}">Verify it</a>'  # the page shows two digits of the number
                text = f"Verified: {verified}" if verified else f"Not verified. Your number: {typed}"
                return answer("200 OK" if verified else "401 Unauthorized", text, link)
    except phoneproof.SessionError:  # a code of another session
        return answer("303 See Other", "", "", ("Location", "/me"))
    except phoneproof.PhoneProofError as error:
        refused = "400 Bad Request" if error.status == 400 else "422 Unprocessable Content"
        status = refused if 400 <= error.status < 500 else "502 Bad Gateway"
        return answer(status, TEXTS.get(error.reason) or TEXTS.get(error.code) or "Try again.")
    return answer("303 See Other", "", "", ("Location", "/me"), ("Set-Cookie", f"{COOKIE}={new}; Path=/; HttpOnly; SameSite=Lax{SECURE}"))


class Server(ThreadingMixIn, WSGIServer):
    """Serves each browser in a thread."""


WSGIRequestHandler.log_message = lambda *_: None  # the address may hold a code
host, port = ADDRESS.split(":")
make_server(host, int(port), site, Server).serve_forever()
