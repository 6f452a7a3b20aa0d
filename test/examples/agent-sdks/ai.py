import asyncio
import os

from auth0_ai.authorizers.async_authorization.async_authorizer_base import (
    AsyncAuthorizerBase,
    get_async_authorization_credentials,
)
from auth0_ai.authorizers.token_vault_authorizer import (
    TokenVaultAuthorizerBase,
    TokenVaultAuthorizerParams,
    get_access_token_from_token_vault,
)

CONTEXT = {"thread_id": "one", "tool_call_id": "one", "tool_name": "tool"}


async def printed(name, authorizer, run):
    async def tool():
        return run()

    try:
        result = await authorizer.protect(lambda *_, **__: CONTEXT, tool)()
    except Exception as error:
        result = getattr(error, "code", None) or repr(error)
    print(f"{name}: {result}", flush=True)


def vault(scope):
    return TokenVaultAuthorizerBase(
        TokenVaultAuthorizerParams(
            scopes=[scope],
            connection=os.environ["CONNECTION"],
            refresh_token=lambda *_, **__: os.environ["REFRESH_TOKEN"],
        )
    )


def api_vault():
    return TokenVaultAuthorizerBase(
        TokenVaultAuthorizerParams(
            scopes=[os.environ["SCOPE"]],
            connection=os.environ["CONNECTION"],
            access_token=lambda *_, **__: os.environ["ACCESS_TOKEN"],
        ),
        {
            "domain": os.environ["AUTH0_DOMAIN"],
            "client_id": os.environ["API_CLIENT_ID"],
            "client_secret": os.environ["API_CLIENT_SECRET"],
        },
    )


async def main():
    await printed("vault", vault(os.environ["SCOPE"]), get_access_token_from_token_vault)
    await printed("api", api_vault(), get_access_token_from_token_vault)
    await printed("more", vault("files.write"), lambda: "nothing")
    order = AsyncAuthorizerBase(
        {
            "scopes": ["orders:write"],
            "audience": os.environ["AUDIENCE"],
            "requested_expiry": 300,
            "binding_message": "Order 1",
            "user_id": os.environ["USER_ID"],
            "on_authorization_request": "block",
        }
    )
    await printed("approval", order, lambda: " ".join(get_async_authorization_credentials()["scope"]))


asyncio.run(main())
