"""Imports the product once and is copied for each life: `python -m tests.kill_points.zygote`.

Reads one JSON object per line: `{"act": …, "bug": "", "points": true}`; answers with one per line.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import replace
from typing import Any


def main() -> None:
    """The environment says which database and which Redis; the database is migrated and empty."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    import django

    django.setup()
    from tests.kill_points import acts, running

    os.environ.update(acts.ENVIRONMENT)
    with running.ready() as stage:
        print(json.dumps("ready"), flush=True)
        for line in sys.stdin:
            asked: dict[str, Any] = json.loads(line)
            began = resource.getrusage(resource.RUSAGE_CHILDREN)
            found = running.run(stage, asked["act"], bug=asked.get("bug", ""), points=asked.get("points", True))
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
            print(json.dumps(running.as_json(replace(found, cpu_s=round(spent, 2)))), flush=True)


if __name__ == "__main__":
    main()
