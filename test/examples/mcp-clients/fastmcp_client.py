"""FastMCP, whose client does all of the login itself."""

import asyncio
import os

from fastmcp import Client
from fastmcp.client.auth import OAuth


async def main():
    auth = OAuth(
        callback_port=int(os.environ["CALLBACK_PORT"]),
        client_metadata_url=os.environ.get("CLIENT_METADATA_URL"),
    )
    async with Client(os.environ["MCP_URL"], auth=auth) as client:
        for name, args in [("list_notes", {}), ("add_note", {"text": "A note"})]:
            result = await client.call_tool(name, args)
            print(f"{name}: {result.content[0].text}")


asyncio.run(main())
