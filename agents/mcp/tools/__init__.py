"""Tools of our own, offered to agents in-process."""
