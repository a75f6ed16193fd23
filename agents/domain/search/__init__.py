"""Search over everything said: one index a database, behind `matchers.find_matcher`.

The index is derived from the rows and keeps itself current: triggers on SQLite, indexes
over expressions on PostgreSQL. `index.py` makes it after each `migrate`, because a
migration that rebuilds a table on SQLite drops its triggers. Searched are the finished,
visible messages of all branches, and the sessions' names.
"""
