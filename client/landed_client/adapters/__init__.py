"""Landed inside agent frameworks: one module per framework, imported by name, each with its own extra to install.

All of them propose through `once`, tell with `landed_client.telling`, and leave repeating to Landed: what a framework
would take for permission to call again never reaches the model.
"""
