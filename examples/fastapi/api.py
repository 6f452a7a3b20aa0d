"""The API: it accepts access tokens that Gatehouse issued for it, with the scope that a route needs."""

import os
from typing import Annotated

import jwt
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

ISSUER = f"https://{os.environ['AUTH0_DOMAIN']}/"
KEYS = jwt.PyJWKClient(f"{ISSUER}.well-known/jwks.json")

api = FastAPI()


def claims(credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> dict:
    token = credentials.credentials
    try:
        key = KEYS.get_signing_key_from_jwt(token)
        return jwt.decode(
            token, key.key, algorithms=["RS256"], audience=os.environ["AUTH0_AUDIENCE"], issuer=ISSUER
        )
    except jwt.PyJWTError as error:
        raise HTTPException(401, "The access token is not valid.") from error


@api.get("/messages")
def messages(token: Annotated[dict, Depends(claims)]):
    if "read:messages" not in token.get("scope", "").split():
        raise HTTPException(403, "The access token lacks the scope read:messages.")
    return {"message": f"The API knows you as {token['sub']}"}
