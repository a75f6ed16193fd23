"""Typed events, and the only door to the channel layer."""
