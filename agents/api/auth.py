"""Bearer tokens: the only way in here. Cookies are not looked at.

So no other site can make a browser ask for anything, and no CSRF token is needed.
"""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.security.http import HttpAuthBase

from agents.domain import tokens
from agents.domain.addresses import client_address
from agents.errors import NotAllowedError
from agents.models import ApiToken, User
from agents.models.tokens import TokenScope


class ApiRequest(HttpRequest):
    """A request that came with a token which works."""

    user: User
    auth: ApiToken


class MissingScopeError(NotAllowedError):
    """The token works, but not for this."""


class TokenAuth(HttpAuthBase):
    """Lets in whose token has all of these scopes."""

    openapi_scheme = "bearer"

    def __init__(self, *scopes: TokenScope) -> None:
        super().__init__()
        self.scopes = scopes

    def __call__(self, request: HttpRequest) -> ApiToken | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        found = tokens.find_token(token.strip())
        if found is None:
            if tokens.refuse_token(client_address(request.META)):
                raise HttpError(429, "Too many wrong tokens came from this address.")
            return None
        for scope in self.scopes:
            if scope not in found.scopes:
                raise MissingScopeError(f"This token lacks the scope “{scope.value}”.")
        # Whoever is signed in by a cookie of the same browser does not count.
        cast("ApiRequest", request).user = found.user
        return found


READ = TokenAuth(TokenScope.READ)
WRITE = TokenAuth(TokenScope.WRITE)
DECIDE = TokenAuth(TokenScope.DECIDE)
CHAT = TokenAuth(TokenScope.READ, TokenScope.WRITE)
