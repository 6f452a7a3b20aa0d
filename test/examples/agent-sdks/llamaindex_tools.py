import asyncio
import os

from auth0_ai_llamaindex.async_authorization import get_async_authorization_credentials
from auth0_ai_llamaindex.auth0_ai import Auth0AI
from auth0_ai_llamaindex.context import set_ai_context
from auth0_ai_llamaindex.token_vault import get_access_token_from_token_vault
from llama_index.core.tools import FunctionTool

auth0 = Auth0AI()


def tool(run):
    return FunctionTool.from_defaults(fn=run, name="tool", description="A tool")


async def printed(name, protected):
    # The wrapped tool returns a coroutine that it does not await, within its own answer.
    try:
        result = (await protected.acall()).raw_output
        result = getattr(result, "raw_output", result)
    except Exception as error:
        result = getattr(error, "code", None) or repr(error)
    print(f"{name}: {result}", flush=True)


def vault(scope):
    return auth0.with_token_vault(
        connection=os.environ["CONNECTION"],
        scopes=[scope],
        refresh_token=lambda *_, **__: os.environ["REFRESH_TOKEN"],
    )


def api_vault():
    client = {
        "domain": os.environ["AUTH0_DOMAIN"],
        "client_id": os.environ["API_CLIENT_ID"],
        "client_secret": os.environ["API_CLIENT_SECRET"],
    }
    return Auth0AI(client).with_token_vault(
        connection=os.environ["CONNECTION"],
        scopes=[os.environ["SCOPE"]],
        access_token=lambda *_, **__: os.environ["ACCESS_TOKEN"],
    )


async def main():
    set_ai_context("one")
    await printed("vault", vault(os.environ["SCOPE"])(tool(lambda: get_access_token_from_token_vault())))
    await printed("api", api_vault()(tool(lambda: get_access_token_from_token_vault())))
    await printed("more", vault("files.write")(tool(lambda: "nothing")))
    asked = auth0.with_async_authorization(
        scopes=["orders:write"],
        audience=os.environ["AUDIENCE"],
        requested_expiry=300,
        binding_message="Order 1",
        user_id=lambda *_, **__: os.environ["USER_ID"],
        on_authorization_request="block",
    )
    await printed(
        "approval",
        asked(tool(lambda: " ".join(get_async_authorization_credentials()["scope"]))),
    )


asyncio.run(main())
