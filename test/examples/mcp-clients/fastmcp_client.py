"""FastMCP, whose client does all of the login itself."""

import asyncio
import os

from fastmcp import Client


async def main():
    async with Client(os.environ["MCP_URL"], auth="oauth") as client:
        for name, args in [("list_notes", {}), ("add_note", {"text": "A note"})]:
            result = await client.call_tool(name, args)
            print(f"{name}: {result.content[0].text}")


asyncio.run(main())
