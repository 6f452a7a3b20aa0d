"""The web application: it logs users in, and calls the API for them."""

import os
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import httpx
import uvicorn
from authlib.integrations.starlette_client import OAuth
from dotenv import load_dotenv
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.sessions import SessionMiddleware

load_dotenv()
# The certificate authority of Gatehouse on this machine. In production its certificate is one that everybody trusts.
os.environ.setdefault("SSL_CERT_FILE", "data/tls/ca.pem")

from api import api  # noqa: E402: reads the environment

DOMAIN = os.environ["AUTH0_DOMAIN"]
HOME = f"http://localhost:{os.environ['PORT']}"

oauth = OAuth()
oauth.register(
    "gatehouse",
    client_id=os.environ["AUTH0_CLIENT_ID"],
    client_secret=os.environ["AUTH0_CLIENT_SECRET"],
    server_metadata_url=f"https://{DOMAIN}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile email read:messages", "code_challenge_method": "S256"},
)

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=os.environ["SESSION_SECRET"])
app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
app.mount("/api", api)

# The access token stays here, and not in the cookie of the session. One process keeps them in its memory.
access_tokens: dict[str, str] = {}


@app.get("/")
def home(request: Request):
    user = request.session.get("user")
    return page(logged_in(user) if user else '<a class="button" href="/login">Log in</a>')


@app.get("/login")
async def login(request: Request):
    return await oauth.gatehouse.authorize_redirect(
        request, f"{HOME}/callback", audience=os.environ["AUTH0_AUDIENCE"]
    )


@app.get("/callback")
async def callback(request: Request):
    token = await oauth.gatehouse.authorize_access_token(request)
    user = {name: token["userinfo"][name] for name in ("sub", "email")}
    request.session["user"] = user
    access_tokens[user["sub"]] = token["access_token"]
    return RedirectResponse("/")


@app.get("/messages")
async def messages(request: Request):
    user = request.session.get("user")
    if not user:
        return RedirectResponse("/login")
    async with httpx.AsyncClient() as client:
        answer = await client.get(
            f"{HOME}/api/messages",
            headers={"authorization": f"Bearer {access_tokens.get(user['sub'], '')}"},
        )
    message = answer.json()["message"] if answer.is_success else f"The API answered {answer.status_code}"
    return page(f'{logged_in(user)}<p role="status">{escape(message)}</p>')


@app.get("/logout")
def logout(request: Request):
    user = request.session.pop("user", None)
    if user:
        access_tokens.pop(user["sub"], None)
    query = urlencode({"client_id": os.environ["AUTH0_CLIENT_ID"], "returnTo": HOME})
    return RedirectResponse(f"https://{DOMAIN}/v2/logout?{query}")


def logged_in(user: dict) -> str:
    return f"""<p>You are logged in as {escape(user["email"])}.</p>
<a class="button" href="/messages">Call the API</a>
<a class="button" href="/logout">Log out</a>"""


def page(content: str) -> HTMLResponse:
    return HTMLResponse(f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>FastAPI example</title>
<link rel="stylesheet" href="/static/style.css">
<main><h1>FastAPI example</h1>{content}</main>
</html>""")


if __name__ == "__main__":
    uvicorn.run(app, host="localhost", port=int(os.environ["PORT"]))
