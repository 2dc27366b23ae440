"""Anchors: what every chain's length and newest digest was at one moment, signed, in a file outside the database.

Whoever can write to the database can write a history anew, or cut it off. Against an anchor that somebody else keeps,
that shows. docs/history.md says what a file holds, docs/operations.md who keeps it.
"""
