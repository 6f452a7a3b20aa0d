"""A small API: each user has notes. It trusts access tokens of one issuer, with the scope that a route needs."""

from auth0_api_python import ApiClient, ApiClientOptions
from auth0_api_python.errors import BaseAuthError
from flask import Flask, abort, request


def create_api(domain, audience):
    client = ApiClient(ApiClientOptions(domain=domain, audience=audience))
    notes = {}
    api = Flask(__name__)

    async def user_with(scope):
        """Returns the id of the user whose token the request has."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            abort(401)
        try:
            claims = await client.verify_access_token(access_token=token)
        except BaseAuthError:
            abort(401)
        if scope not in claims.get("scope", "").split():
            abort(403)
        return claims["sub"]

    @api.get("/notes")
    async def read():
        return notes.get(await user_with("read:notes"), [])

    @api.post("/notes")
    async def write():
        notes.setdefault(await user_with("write:notes"), []).append(request.json["text"])
        return "", 201

    return api
