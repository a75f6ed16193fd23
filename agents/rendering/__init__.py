"""Text in, safe HTML out: the only package that makes `SafeString`s.

Everything here is a pure function of its arguments (no models, no queries), copes
with text of any size and content, and never raises on what a model or a tool wrote.
`text` and `icons` know no other module; `tool_calls` and `approvals` stand on top.
"""

from __future__ import annotations
