"""An OpenID provider and an imitation of GitHub on loopback, and people who sign in there."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx

from support.credentials import random_secret

_FOLDER = Path(__file__).parent / "oidc"


class OpenIdProvider:
    """A process of npm's oidc-provider; ``openid`` and ``github`` are its URLs."""

    def __init__(self) -> None:
        self.secret = random_secret()
        self._process = subprocess.Popen(
            ["node", "provider.js"],
            cwd=_FOLDER,
            env={**os.environ, "CLIENT_SECRET": self.secret},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        line = self._process.stdout.readline()
        assert line, "The provider did not start; script/oidc installs it."
        urls = json.loads(line)
        self.openid, self.github = urls["openid"], urls["github"]

    def settings(self, **changes):
        """Return the setting ``sign_in`` of a server with both."""
        client = {"client_id": "ladderboard", "client_secret": self.secret}
        openid = {**client, "title": "University", "issuer": self.openid, **changes}
        github = {**client, "issuer": self.github, "api": f"{self.github}/api"}
        return {"university": openid, "github": github}

    def rotate_keys(self):
        """Replace the keys that sign ID tokens."""
        httpx.post(f"{self.openid}/test/rotate").raise_for_status()

    def forge_next_token(self, kind):
        """Replace the next ID token by one that is right but for the kind."""
        httpx.post(f"{self.openid}/test/forge/{kind}").raise_for_status()

    def stop(self):
        """End the process."""
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()


def sign_in_at_provider(browser, url, login):
    """Follow a provider's forms; return the URL of the callback, without opening it."""
    host = urlsplit(url).netloc
    response = browser.get(url)
    while True:
        while response.is_redirect:
            url = urljoin(url, response.headers["location"])
            if urlsplit(url).netloc != host:
                return url
            response = browser.get(url)
        action = re.search(r'<form[^>]+action="([^"]+)"', response.text)[1]
        prompt = re.search(r'name="prompt" value="(\w+)"', response.text)[1]
        url = urljoin(url, action)
        fields = {"prompt": prompt, "login": login, "password": random_secret()}
        response = browser.post(url, data=fields)
