"""The ASGI application: HTTP to Django, WebSockets to `agents.live`."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "openswarm.settings")

http_application = get_asgi_application()

# Django must be set up before anything that imports models.
from channels.auth import AuthMiddlewareStack  # noqa: E402  see above
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402  see above
from channels.security.websocket import (  # noqa: E402  see above
    AllowedHostsOriginValidator,
)

from agents.live.routing import websocket_urlpatterns  # noqa: E402  see above

application = ProtocolTypeRouter(
    {
        "http": http_application,
        "websocket": AllowedHostsOriginValidator(
            AuthMiddlewareStack(
                URLRouter(websocket_urlpatterns)  # type: ignore[arg-type]  # the stubs lag
            )
        ),
    }
)
