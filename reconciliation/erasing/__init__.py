"""Erases what is stored about a person: everything that an order's intents and cases say about people, with the salts
that their digests were made with. Keys, ids, amounts, statuses and the chains stay; docs/operations.md lists both.
"""

from .finding import Found, find
from .subject import Erased, erase

__all__ = ["Erased", "Found", "erase", "find"]
