"""A small MCP server over stdio: two tools, and ways to misbehave on request.

Run as a program in the jail: `python notes.py [hang | die | flood | long]`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("notes", instructions="Keep notes short.")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def read_note(title: str) -> str:
    """Read a note."""
    path = Path(title)
    return path.read_text() if path.exists() else f"no note {title}"


@server.tool(name="write.note", annotations=ToolAnnotations(destructive_hint=True))
def write_note(title: str, text: str) -> str:
    """Write a note."""
    Path(title).write_text(text)
    return f"written: {title}"


@server.tool()
def environment() -> str:
    """Show what this program can see."""
    names = sorted(os.environ)
    return f"names={names} TOKEN={os.environ.get('TOKEN')} cwd={Path.cwd()}"


@server.tool()
def crash() -> str:
    """End this program in the middle of a call."""
    os._exit(3)


@server.tool()
async def sleep() -> str:
    """Never answer."""
    await asyncio.sleep(3600)
    return "awake"


def main() -> None:
    how = sys.argv[1] if len(sys.argv) > 1 else ""
    if how == "hang":
        time.sleep(3600)
    if how == "die":
        sys.stderr.write("no database here\n")
        raise SystemExit(7)
    if how == "long":
        sys.stdout.write("x" * 20_000_000)
        sys.stdout.flush()
    if how == "flood":
        if os.fork() == 0:
            while True:
                os.write(2, b"complaint " * 1000)
        sys.stdout.write("this is no message\n")
    server.run("stdio")


if __name__ == "__main__":
    main()
