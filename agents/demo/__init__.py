"""The offline scripted model: an upstream that speaks the Anthropic Messages API.

`app` answers HTTP, `turn` decides what comes next in a conversation, `script` and
`sentences` read prompts, `stream` encodes a reply, `state` is what tests look at,
`server` runs it all. Knows nothing of Django's models; the gateway reaches it by URL.
"""

from __future__ import annotations
