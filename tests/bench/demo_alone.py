"""A process with nothing but the demo model in it, recording nothing."""

from __future__ import annotations

import sys

from agents.demo.server import DemoServer
from agents.demo.state import DemoState

from .children import say


def main() -> None:
    with DemoServer(DemoState(max_recorded=0)) as demo:
        say({"url": demo.url})
        sys.stdin.read()


if __name__ == "__main__":
    main()
