"""The API as a whole: its operations, its document, how it refuses."""

from __future__ import annotations

from typing import Any

from ninja import NinjaAPI, Router, Schema

from agents.models.tokens import TokenScope

from . import approvals, chat, events, messages, sessions
from .auth import READ, ApiRequest, TokenAuth
from .errors import REFUSALS, add_handlers

VERSION = "1"
DESCRIPTION = """\
Start agents, talk to them, follow what they do and decide what they may do.

Each request shows a token: `Authorization: Bearer osw_…`. You make one on the page
Settings → API tokens; it may do what you may do, as far as its scopes go. What is not
yours is answered by 404. Every refusal has the same shape, with a code, a sentence and
the fields at fault.
"""

me = Router(tags=["Account"])


class MeOut(Schema):
    username: str
    role: str
    token: str
    scopes: list[str]


@me.get(
    "/me/",
    auth=READ,
    response={200: MeOut, **REFUSALS},
    url_name="me",
    operation_id="get_me",
    summary="Who am I",
)
def get_me(request: ApiRequest) -> dict[str, Any]:
    """The person and the token, to try whether it works."""
    token = request.auth
    return {
        "username": request.user.get_username(),
        "role": request.user.role,
        "token": token.name,
        "scopes": token.scopes,
    }


api = NinjaAPI(
    title="OpenSwarm",
    version=VERSION,
    description=DESCRIPTION,
    openapi_url=None,
    docs_url=None,
    urls_namespace="api",
)
add_handlers(api)
for router in (me, sessions.router, messages.router, events.router):
    api.add_router("", router)
for router in (approvals.router, chat.router):
    api.add_router("", router)


def document() -> dict[str, Any]:
    """The OpenAPI document; each operation says which scopes its token needs."""
    found: dict[str, Any] = api.get_openapi_schema()
    for bound in api._get_bound_routers():
        for view in bound.path_operations.values():
            for operation in view.operations:
                _add_scopes(found, operation)
    return found


def _add_scopes(found: dict[str, Any], operation: Any) -> None:
    scopes = [
        scope.value
        for auth in operation.auth_callbacks
        if isinstance(auth, TokenAuth)
        for scope in auth.scopes
    ]
    for path in found["paths"].values():
        for described in path.values():
            if described["operationId"] == operation.operation_id:
                described["security"] = [{TokenAuth.__name__: scopes}]


SCOPES = {scope.value: scope.label for scope in TokenScope}
