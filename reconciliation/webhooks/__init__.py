"""Webhooks: verified, kept once, applied once."""
