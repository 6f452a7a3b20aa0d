"""An MCP server of the official SDK for Python, which accepts the access tokens of Gatehouse."""

import os

import anyio
import jwt
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

PORT = int(os.environ["MCP_PORT"])
ISSUER = f"https://{os.environ['AUTH0_DOMAIN']}/"
RESOURCE = f"http://localhost:{PORT}/mcp"


class Verifier:
    keys = jwt.PyJWKClient(f"{ISSUER}.well-known/jwks.json")

    async def verify_token(self, token):
        try:
            key = await anyio.to_thread.run_sync(self.keys.get_signing_key_from_jwt, token)
            claims = jwt.decode(token, key, algorithms=["RS256"], issuer=ISSUER, audience=RESOURCE)
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["azp"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=RESOURCE,
            subject=claims["sub"],
        )


server = MCPServer(
    "notes",
    token_verifier=Verifier(),
    auth=AuthSettings(
        issuer_url=ISSUER,
        resource_server_url=RESOURCE,
        required_scopes=["notes:read"],
        validate_token_resource=True,
    ),
)


@server.tool()
def list_notes() -> str:
    """Lists the notes of the user"""
    return "There are no notes in Python."


server.run("streamable-http", host="localhost", port=PORT)
