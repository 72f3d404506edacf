"""An nginx of the tests' own, on loopback ports, with the configuration of the how-to page."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PAGE = Path(__file__).parents[1] / "docs/how-to/reverse-proxy.md"
_LIVE = "/etc/letsencrypt/live/boards.example.org"
# What is around the page's part: Debian packs pages, so ours does.
_AROUND = """
daemon off;
worker_processes 1;
pid {folder}/pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    gzip on;
    {servers}
}}
"""


def program() -> str:
    """Return where nginx is; without it the tests fail, and say so."""
    found = shutil.which("nginx", path="/usr/local/sbin:/usr/sbin") or shutil.which("nginx")
    assert found, "The tests need nginx; script/nginx installs it."
    return found


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def written() -> str:
    """Return the configuration on the page."""
    (found,) = re.findall(r"^```nginx\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return found


def filled(text: str, pairs: dict[str, str]) -> str:
    """Return a text with words in place of others, each of which must be in it once."""
    for old, new in pairs.items():
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in:\n{text}"
        text = text.replace(old, new)
    return text


class Nginx:
    """A running nginx: the page's configuration, with ports, paths and ``changes`` filled in.

    ``to`` is the port of the server behind it; ``port`` is that of nginx, where it is known before.
    """

    def __init__(
        self, to: int, *, port: int | None = None, changes: dict[str, str] | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lb-nginx-"))
        self.folder.chmod(0o755)  # if started by root, it works as another user
        self.port, self.plain_port = port or free_port(), free_port()
        self.authority = self.folder / "authority.pem"
        make_certificates(self.folder)
        places = {
            "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
            "listen 443 ssl;": f"listen 127.0.0.1:{self.port} ssl;",
            "listen [::]:80;": "",
            "listen [::]:443 ssl;": "",
            "http://127.0.0.1:8000": f"http://127.0.0.1:{to}",
            f"{_LIVE}/fullchain.pem": f"{self.folder}/chain.pem",
            f"{_LIVE}/privkey.pem": f"{self.folder}/key.pem",
        }
        servers = filled(filled(written(), changes or {}), places)
        config = self.folder / "nginx.conf"
        config.write_text(_AROUND.format(folder=self.folder, servers=servers))
        self.log = self.folder / "error.log"
        command = [program(), "-p", self.folder, "-e", self.log, "-c", config]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._wait()

    def _wait(self) -> None:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                assert self.process.poll() is None, self.process.stdout.read().decode()
                time.sleep(0.02)
            else:
                return
        raise AssertionError(self.log.read_text())

    def stop(self) -> None:
        """Stop it, and remove its folder."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def make_certificates(folder: Path) -> None:
    """Write an authority of our own, and a certificate of its making for names of the loopback."""
    key, name = ec.generate_private_key(ec.SECP256R1()), _name("Tests")
    authority = _certificate(key.public_key(), name, name, key, is_authority=True)
    own = ec.generate_private_key(ec.SECP256R1())
    leaf = _certificate(own.public_key(), _name("localhost"), name, key)
    pem = serialization.Encoding.PEM
    (folder / "authority.pem").write_bytes(authority.public_bytes(pem))
    (folder / "chain.pem").write_bytes(leaf.public_bytes(pem))
    secret = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(secret)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(public, name, issuer, key, *, is_authority=False) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.DNSName("boards.example.org")]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    usage = {
        "digital_signature": not is_authority, "key_cert_sign": is_authority,
        "crl_sign": is_authority,
    }  # fmt: skip
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    others += ("encipher_only", "decipher_only")
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        .add_extension(x509.KeyUsage(**usage, **dict.fromkeys(others, False)), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    )
    if not is_authority:
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return made.sign(key, hashes.SHA256())
