"""The web application: it logs users in, and calls the API for them."""

import os
from html import escape
from urllib.parse import urlencode

import requests
from authlib.integrations.flask_client import OAuth
from dotenv import load_dotenv
from flask import Flask, redirect, session

load_dotenv()
# The certificate authority of Gatehouse on this machine. In production its certificate is one that everybody trusts.
os.environ.setdefault("SSL_CERT_FILE", "data/tls/ca.pem")
os.environ.setdefault("REQUESTS_CA_BUNDLE", "data/tls/ca.pem")

from api import api  # noqa: E402: reads the environment

DOMAIN = os.environ["AUTH0_DOMAIN"]
HOME = f"http://localhost:{os.environ['PORT']}"

app = Flask(__name__)
app.secret_key = os.environ["SESSION_SECRET"]
app.register_blueprint(api)

oauth = OAuth(app)
oauth.register(
    "gatehouse",
    client_id=os.environ["AUTH0_CLIENT_ID"],
    client_secret=os.environ["AUTH0_CLIENT_SECRET"],
    server_metadata_url=f"https://{DOMAIN}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile email read:messages", "code_challenge_method": "S256"},
)

# The access token stays here, and not in the cookie of the session. One process keeps them in its memory.
access_tokens: dict[str, str] = {}


@app.get("/")
def home():
    user = session.get("user")
    return page(logged_in(user) if user else '<a class="button" href="/login">Log in</a>')


@app.get("/login")
def login():
    return oauth.gatehouse.authorize_redirect(f"{HOME}/callback", audience=os.environ["AUTH0_AUDIENCE"])


@app.get("/callback")
def callback():
    token = oauth.gatehouse.authorize_access_token()
    user = {name: token["userinfo"][name] for name in ("sub", "email")}
    session["user"] = user
    access_tokens[user["sub"]] = token["access_token"]
    return redirect("/")


@app.get("/messages")
def messages():
    user = session.get("user")
    if not user:
        return redirect("/login")
    answer = requests.get(
        f"{HOME}/api/messages",
        headers={"authorization": f"Bearer {access_tokens.get(user['sub'], '')}"},
        timeout=10,
    )
    message = answer.json()["message"] if answer.ok else f"The API answered {answer.status_code}"
    return page(f'{logged_in(user)}<p role="status">{escape(message)}</p>')


@app.get("/logout")
def logout():
    user = session.pop("user", None)
    if user:
        access_tokens.pop(user["sub"], None)
    query = urlencode({"client_id": os.environ["AUTH0_CLIENT_ID"], "returnTo": HOME})
    return redirect(f"https://{DOMAIN}/v2/logout?{query}")


def logged_in(user: dict) -> str:
    return f"""<p>You are logged in as {escape(user["email"])}.</p>
<a class="button" href="/messages">Call the API</a>
<a class="button" href="/logout">Log out</a>"""


def page(content: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Flask example</title>
<link rel="stylesheet" href="/static/style.css">
<main><h1>Flask example</h1>{content}</main>
</html>"""


if __name__ == "__main__":
    app.run(host="localhost", port=int(os.environ["PORT"]))
