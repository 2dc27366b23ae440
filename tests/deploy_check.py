"""`manage.py check --deploy` as production would see it: `python -m tests.deploy_check`.

The database is not asked: only settings are checked, on values made up here.
"""

import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from config.children import ROOT
from reconciliation.anchoring import keys

OURS = ("LANDED_", "SECURE_")


def safe_environment(folder: str) -> dict[str, str]:
    """A production environment that nothing should be said against."""
    key = Path(folder) / "anchor.key"
    if not key.exists():
        keys.make(key)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {
        **inherited,
        "LANDED_MODE": "production",
        "LANDED_DATA": folder,
        "SECRET_KEY": secrets.token_urlsafe(64),
        "ALLOWED_HOSTS": "landed.example",
        "CSRF_TRUSTED_ORIGINS": "https://landed.example",
        "DATABASE_URL": f"sqlite:///{folder}/landed.sqlite3",
        "REDIS_URL": "redis://127.0.0.1:6379/0",
        "EMAIL_URL": "submission://landed:secret@mail.example:587",
        "LANDED_PUBLIC_URL": "https://landed.example",
        "STATIC_ROOT": f"{folder}/static",
        "LANDED_ANCHORS": f"{folder}/anchors",
        "LANDED_ANCHOR_KEY": str(key),
    }


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
        return subprocess.run(command, cwd=ROOT, env=safe_environment(folder), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
