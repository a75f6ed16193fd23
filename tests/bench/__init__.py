"""`make bench`: how fast pages follow the model, measured on the machine at hand.

The demo model stamps each word with the machine's monotonic clock when it leaves. A
viewer at the other end of the product reads the stamps; so does a program that uses
the Claude Agent SDK alone. Nothing here asserts a time: the numbers are published as
they are, in `docs/performance.md`.
"""
