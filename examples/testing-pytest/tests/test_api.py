import pytest

from api import create_api

AUDIENCE = "https://api.example.test/"


@pytest.fixture
def call(gatehouse):
    """Calls a new API: reads notes, or writes one."""
    api = create_api(domain=gatehouse, audience=AUDIENCE).test_client()

    def call(token=None, text=None):
        headers = {"authorization": f"Bearer {token}"} if token else {}
        if text is None:
            return api.get("/notes", headers=headers)
        return api.post("/notes", headers=headers, json={"text": text})

    return call


def test_keeps_the_notes_of_each_user(call, token_of):
    ada, grace = token_of("ada@example.test"), token_of("grace@example.test")
    assert call(ada, "Engine").status_code == 201
    assert call(grace, "Compiler").status_code == 201
    assert call(ada).json == ["Engine"]
    assert call(grace).json == ["Compiler"]


def test_requires_a_token(call):
    assert call().status_code == 401
    assert call("no-token").status_code == 401


def test_requires_the_scope_of_the_route(call, token_of):
    token = token_of("ada@example.test", scope="read:notes")
    assert call(token).status_code == 200
    assert call(token, "Engine").status_code == 403
