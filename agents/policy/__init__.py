"""May this tool call run? Plain Python, without Django, rows or clocks.

`decision.decide` is the only door that the gate needs; everything it depends on comes
as arguments. Order of the files: modes, tools, calls < words, wrappers, commands,
paths < catastrophes, bounds, rules < matchers, decision.
"""

from __future__ import annotations
