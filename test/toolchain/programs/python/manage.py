"""Manages a tenant with auth0-python, and prints a line for each step that worked."""

import os
from importlib.metadata import version

from auth0.management import ManagementClient
from auth0.management.core.api_error import ApiError

DATABASE = "Username-Password-Authentication"


def step(text: str) -> None:
    print(f"step {text}", flush=True)


def refused(text: str, call) -> None:
    try:
        call()
    except ApiError as error:
        print(f"refused {text}: {error.status_code} {error.body['message']}", flush=True)
    else:
        raise SystemExit(f"{text} was not refused")


client = ManagementClient(
    domain=os.environ["AUTH0_DOMAIN"],
    client_id=os.environ["AUTH0_CLIENT_ID"],
    client_secret=os.environ["AUTH0_CLIENT_SECRET"],
)
print(f"version {version('auth0-python')}")

application = client.clients.create(name="Python", app_type="regular_web", callbacks=["https://a.example.test/cb"])
client.clients.update(application.client_id, description="changed")
assert client.clients.get(application.client_id).description == "changed"
assert "Python" in [one.name for one in client.clients.list(per_page=2)]
step("applications")

connection = client.connections.create(
    name="python-database", strategy="auth0", options={"passwordPolicy": "good"}
)
client.connections.update(connection.id, display_name="Changed")
assert client.connections.get(connection.id).display_name == "Changed"
assert "python-database" in [one.name for one in client.connections.list(take=1)]
step("connections")

user = client.users.create(connection=DATABASE, email="python@example.test", password="A-long-Passw0rd!")
client.users.update(user.user_id, nickname="Snake")
assert client.users.get(user.user_id).nickname == "Snake"
assert "python@example.test" in [one.email for one in client.users.list(q='email:"python@example.test"')]
step("users")

organization = client.organizations.create(name="python")
client.organizations.update(organization.id, display_name="Changed")
client.organizations.members.create(organization.id, members=[user.user_id])
assert [one.email for one in client.organizations.members.list(organization.id)] == ["python@example.test"]
assert "python" in [one.name for one in client.organizations.list(take=1)]
step("organizations")

refused("a second connection of the name", lambda: client.connections.create(name="python-database", strategy="auth0"))

client.organizations.delete(organization.id)
client.users.delete(user.user_id)
client.connections.delete(connection.id)
client.clients.delete(application.client_id)
refused("a deleted application", lambda: client.clients.get(application.client_id))
step("deletions")
