"""How the demo speaks to Landed and to the sandbox: as any program would, over HTTP."""

from typing import Any

import requests

_TIMEOUT_S = 10


class Landed:
    """An agent's view."""

    def __init__(self, base_url: str, token: str) -> None:
        self._url = f"{base_url}/api/v1"
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {token}"

    def propose(self, request_key: str, **intent: Any) -> requests.Response:
        headers = {"Idempotency-Key": f'"{request_key}"'}
        return self._session.post(f"{self._url}/intents", json=intent, headers=headers, timeout=_TIMEOUT_S)


class Sandbox:
    """The control desk of the payments sandbox."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.trust_env = False

    def order_fault(self, subject: str, fault: str, **more: Any) -> None:
        self._post("/_control/faults", {"order": subject, "fault": fault, **more})

    def add_entry(self, subject: str, **entry: Any) -> None:
        self._post("/_control/entries", {"order": subject, **entry})

    def _post(self, path: str, content: dict[str, Any]) -> None:
        self._session.post(self._url + path, json=content, timeout=_TIMEOUT_S).raise_for_status()
