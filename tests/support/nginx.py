"""Runs nginx on loopback ports with the configuration shown in the how-to page."""

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

from support.processes import free_port

PAGE = Path(__file__).parents[2] / "docs/how-to/reverse-proxy.md"
_CERTIFICATES = "/etc/letsencrypt/live/boards.example.org"
# The rest of the configuration. Debian's default turns gzip on, so this does too.
_MAIN_CONFIG = """
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


def find_nginx() -> str:
    """Return the path of nginx; fail if it is not installed."""
    path = shutil.which("nginx", path="/usr/local/sbin:/usr/sbin") or shutil.which("nginx")
    assert path, "The tests need nginx; script/nginx installs it."
    return path


def documented_config() -> str:
    """Return the nginx configuration from the how-to page."""
    (config,) = re.findall(r"^```nginx\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return config


def replace_once(text: str, replacements: dict[str, str]) -> str:
    """Return the text with replacements made; each old string must occur exactly once."""
    for old, new in replacements.items():
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in:\n{text}"
        text = text.replace(old, new)
    return text


class Nginx:
    """A running nginx with the documented configuration, adapted to local ports and paths.

    ``upstream`` is the port of the server behind it, ``port`` the TLS port of nginx (default: a
    free one). ``changes`` are replacements made in the documented configuration.
    """

    def __init__(
        self, upstream: int, *, port: int | None = None, changes: dict[str, str] | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lb-nginx-"))
        self.folder.chmod(0o755)  # started by root, its workers run as another user
        self.port, self.plain_port = port or free_port(), free_port()
        self.authority = self.folder / "authority.pem"
        make_certificates(self.folder)
        local = {
            "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
            "listen 443 ssl;": f"listen 127.0.0.1:{self.port} ssl;",
            "listen [::]:80;": "",
            "listen [::]:443 ssl;": "",
            "http://127.0.0.1:8000": f"http://127.0.0.1:{upstream}",
            f"{_CERTIFICATES}/fullchain.pem": f"{self.folder}/chain.pem",
            f"{_CERTIFICATES}/privkey.pem": f"{self.folder}/key.pem",
        }
        servers = replace_once(replace_once(documented_config(), changes or {}), local)
        config = self.folder / "nginx.conf"
        config.write_text(_MAIN_CONFIG.format(folder=self.folder, servers=servers))
        self.log = self.folder / "error.log"
        command = [find_nginx(), "-p", self.folder, "-e", self.log, "-c", config]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._wait_until_listening()

    def _wait_until_listening(self) -> None:
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
        """Stop nginx and remove its folder."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def make_certificates(folder: Path) -> None:
    """Write a certificate authority and a certificate signed by it for loopback names."""
    key, name = ec.generate_private_key(ec.SECP256R1()), _name("Tests")
    authority = _certificate(key.public_key(), name, name, key, is_authority=True)
    leaf_key = ec.generate_private_key(ec.SECP256R1())
    leaf = _certificate(leaf_key.public_key(), _name("localhost"), name, key)
    pem = serialization.Encoding.PEM
    (folder / "authority.pem").write_bytes(authority.public_bytes(pem))
    (folder / "chain.pem").write_bytes(leaf.public_bytes(pem))
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(leaf_key.private_bytes(pem, pkcs8, plain))


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
    unused_usages = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    unused_usages += ("encipher_only", "decipher_only")
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        .add_extension(x509.KeyUsage(**usage, **dict.fromkeys(unused_usages, False)), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    )
    if not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, hashes.SHA256())
