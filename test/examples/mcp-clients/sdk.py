"""The official SDK for Python: a login, a refresh when the access token has expired, a second login for more scopes, and
another try when the user has ended the access."""

import asyncio
import os
import sys
from urllib.parse import parse_qs, urlsplit

from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

PORT = int(os.environ["CALLBACK_PORT"])
REDIRECT = f"http://localhost:{PORT}/callback"


class Storage:
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def open_browser(url):
    print(f"Open {url}", flush=True)


async def answer_of_login():
    """Waits for the browser, and returns what it brings."""
    answer = asyncio.get_running_loop().create_future()

    async def respond(reader, writer):
        target = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ")[1]
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nYou can close this page.")
        writer.close()
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        if answer.done():
            return
        if "code" in query:
            answer.set_result(AuthorizationCodeResult.model_validate(query))
        elif "error" in query:
            answer.set_exception(Exception(query["error"]))

    async with await asyncio.start_server(respond, "localhost", PORT):
        return await answer


def causes(error):
    inner = getattr(error, "exceptions", [])
    return ", ".join(map(causes, inner)) if inner else repr(error)


async def main():
    storage = Storage()
    url = os.environ["MCP_URL"]
    metadata = OAuthClientMetadata(
        client_name="SDK for Python",
        redirect_uris=[REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    document = os.environ.get("CLIENT_METADATA_URL")
    if client_id := os.environ.get("CLIENT_ID"):
        storage.client = OAuthClientInformationFull(
            client_id=client_id, redirect_uris=[REDIRECT], token_endpoint_auth_method="none"
        )
    auth = OAuthClientProvider(url, metadata, storage, open_browser, answer_of_login, document)

    async with (
        create_mcp_http_client(auth=auth) as http_client,
        Client(streamable_http_client(url, http_client=http_client)) as client,
    ):

        async def call(name, args):
            result = await client.call_tool(name, args)
            print(f"{name}: {result.content[0].text}")
            print(f"tokens: {storage.tokens.model_dump_json()}", flush=True)

        await call("list_notes", {})
        await asyncio.sleep(storage.tokens.expires_in)
        await call("list_notes", {})
        await call("add_note", {"text": "A note"})
        await asyncio.to_thread(sys.stdin.readline)
        await asyncio.sleep(storage.tokens.expires_in)
        await call("list_notes", {})


try:
    asyncio.run(main())
# What the user declined ends the transport, and everything with it.
except Exception as error:
    print(f"refused: {causes(error)}")
