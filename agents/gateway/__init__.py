"""The only way from an agent to a model: a small proxy for the Messages API.

`server` owns the sockets, `app` lets calls in, `call` forwards one of them, `relay`
and `events` treat its stream, `ledger` writes down what it cost, `lines` knows which
CLI process may call what, `probe` tests a provider. Bodies, keys and tokens are never
logged. The demo model is just one more upstream, known by its URL.
"""

from __future__ import annotations
