"""The API: it accepts access tokens that Gatehouse issued for it, with the scope that a route needs."""

import os

import jwt
from flask import Blueprint, request

ISSUER = f"https://{os.environ['AUTH0_DOMAIN']}/"
KEYS = jwt.PyJWKClient(f"{ISSUER}.well-known/jwks.json")

api = Blueprint("api", __name__, url_prefix="/api")


@api.get("/messages")
def messages():
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return {"message": "The request has no access token."}, 401
    try:
        key = KEYS.get_signing_key_from_jwt(token)
        claims = jwt.decode(
            token, key.key, algorithms=["RS256"], audience=os.environ["AUTH0_AUDIENCE"], issuer=ISSUER
        )
    except jwt.PyJWTError:
        return {"message": "The access token is not valid."}, 401
    if "read:messages" not in claims.get("scope", "").split():
        return {"message": "The access token lacks the scope read:messages."}, 403
    return {"message": f"The API knows you as {claims['sub']}"}
