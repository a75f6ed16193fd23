"""The sockets' URLs."""

from __future__ import annotations

from django.urls import path, re_path

from .consumers import HomeConsumer, NowhereConsumer, SessionConsumer

# Each as_asgi() is an ASGI application, which types-channels can't tell from a view.
websocket_urlpatterns = [
    path(
        "ws/session/<uuid:session_id>/",
        SessionConsumer.as_asgi(),  # type: ignore[arg-type]  # see above
        name="ws_session",
    ),
    path(
        "ws/home/",
        HomeConsumer.as_asgi(),  # type: ignore[arg-type]  # see above
        name="ws_home",
    ),
    # Without it an unknown path is an exception in the log.
    re_path(r"", NowhereConsumer.as_asgi()),  # type: ignore[arg-type]  # see above
]
