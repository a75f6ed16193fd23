"""Django's settings, read from the environment by `env.py`; wiring only.

`OPENSWARM_URL` names the address people use. An https address switches on secure
cookies, HSTS and the redirect to https; without it the site is for this machine only.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from csp.constants import NONE, SELF

from agents.conf import Conf

from . import env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(env.text("OPENSWARM_DATA_DIR", str(BASE_DIR / "var"))).resolve()

DEBUG = env.flag("OPENSWARM_DEBUG")
SECRET_KEY = env.text("OPENSWARM_SECRET_KEY") or env.secret_file(
    DATA_DIR / "secret.key"
)
# Newest first; older keys still decrypt (MultiFernet). See docs/howto/deploy.md.
ENCRYPTION_KEYS = (
    env.words("OPENSWARM_ENCRYPTION_KEYS")
    or env.secret_file(DATA_DIR / "encryption.key").split()
)

PUBLIC_URL = env.text("OPENSWARM_URL").rstrip("/")
_public = urlsplit(PUBLIC_URL)
_secure = _public.scheme == "https"
ALLOWED_HOSTS = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    *([_public.hostname] if _public.hostname else []),
    *env.words("OPENSWARM_ALLOWED_HOSTS"),
]
CSRF_TRUSTED_ORIGINS = [
    *([PUBLIC_URL] if PUBLIC_URL else []),
    *env.words("OPENSWARM_TRUSTED_ORIGINS"),
]

INSTALLED_APPS = [
    "agents.apps.AgentsConfig",  # before daphne: it has a `runserver` of its own
    "daphne",
    "openswarm.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "django_htmx",
    "template_partials.apps.SimpleAppConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "openswarm.static.StaticFilesMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "agents.web.middleware.LoginRedirectMiddleware",
    "agents.web.middleware.ErrorMiddleware",
    "agents.web.middleware.TimezoneMiddleware",
]

ROOT_URLCONF = "openswarm.urls"
ASGI_APPLICATION = "openswarm.asgi.application"

_FILES = [
    "django.template.loaders.filesystem.Loader",
    "django.template.loaders.app_directories.Loader",
]
_CACHED = _FILES if DEBUG else [("django.template.loaders.cached.Loader", _FILES)]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agents.web.context.shell",
            ],
            # Outermost: the cache knows nothing of "template.html#partial".
            "loaders": [("template_partials.loader.Loader", _CACHED)],
        },
    }
]

DATABASES = {"default": env.database(env.text("OPENSWARM_DATABASE_URL"), DATA_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.text("OPENSWARM_REDIS_URL")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

AUTH_USER_MODEL = "agents.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "session_list"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "openswarm.storage.JoiningStorage"
    },
}
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_ALLOW_ALL_ORIGINS = False

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
# Only behind a proxy that sets X-Forwarded-For itself: else clients choose the
# address by which sign-ins are limited and audited.
TRUST_FORWARDED_FOR = env.flag("OPENSWARM_TRUSTED_PROXY")
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 60 * 60 * 24 * 30
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _secure
SECURE_SSL_REDIRECT = _secure
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _secure else None
SECURE_HSTS_SECONDS = 31_536_000 if _secure else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _secure
DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024 * 1024

OPENSWARM = env.conf_overrides(Conf)
# The one seam between embedded and team mode: how a queued run gets started.
DISPATCHER = "agents.execution.dispatch.local.LocalDispatcher"

_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}
    },
    "filters": {"tokens": {"()": "openswarm.redaction.HideTokens"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["tokens"],
        }
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "agents": {"level": env.choice("OPENSWARM_LOG", "INFO", _LEVELS)},
        # The MCP client logs what servers send; what matters stands on their rows.
        "mcp": {"level": "CRITICAL"},
        "client": {"level": "CRITICAL"},
        # Before Django's own handler, which a developer's terminal has as well.
        "django.request": {"filters": ["tokens"]},
        "django.channels.server": {"filters": ["tokens"]},
    },
}

UNKNOWN_VARIABLES = env.unknown_variables()
