"""Sends due deliveries of webhooks to allowed addresses, without delaying anything else.

A receiver's host is resolved, every address is checked, and the connection goes to an address that
was checked: a name that resolves to something else a moment later changes nothing. Redirects are
not followed, and proxies of the environment are not used.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ladderboard.board import (
    DeliveryResult,
    announce_deadlines,
    claim_and_sign_deliveries,
    delete_old_deliveries,
    list_due_deliveries,
    record_delivery_results,
)
from ladderboard.errors import InvalidSetting, LadderboardError, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import httpx

    from ladderboard.board import Boards, Delivery, DueDelivery
    from ladderboard.server._log import ServerLog
    from ladderboard.server._settings import Settings

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

TIMEOUT_SECONDS = 10.0
"""The time that a receiver has for everything."""
_TICK_SECONDS = 1.0
_PAUSE_SECONDS = 0.05  # so that results are recorded together
_STOP_SECONDS = 2.0  # for the last results
_MAX_UNDER_WAY = 256
_MAX_PER_HOST = 16  # a host that hangs leaves room for others
_MAX_DUE = 5_000  # rows that are read at a time
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PRIVATE_ADDRESS = (
    "The address of this webhook is not public. The server's setting webhook_private allows "
    "loopback and private addresses."
)


class AddressRefused(Exception):
    """An address that webhooks may not go to."""


def is_public_address(text: str) -> bool:
    """Return whether an address is on the public internet, embedded IPv4 addresses included.

    >>> is_public_address("93.184.215.14"), is_public_address("127.0.0.1")
    (True, False)
    >>> is_public_address("::ffff:10.0.0.1"), is_public_address("2002:a00:1::")
    (False, False)
    """
    address: Address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv4Address):
        return _is_global(address)
    embedded = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        embedded.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    inner = [part for part in embedded if part is not None]
    outer_counts = address.ipv4_mapped is None
    return all(map(_is_global, inner)) and (
        not outer_counts or (_is_global(address) and not address.is_site_local)
    )


def _is_global(address: Address) -> bool:
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def check_literal_address(url: str, *, private: bool) -> None:
    """Refuse a URL whose host is a private address, in any notation; names are not looked up."""
    try:
        host = urlsplit(url).hostname or ""
        resolved = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, ValueError):
        return  # a name, or a URL that is refused anyway
    if not private and not all(is_public_address(str(item[4][0])) for item in resolved):
        raise InvalidSetting(_PRIVATE_ADDRESS)


def choose_address(addresses: Iterable[str], *, private: bool) -> str:
    """Return an address to connect to; refuse a host if any of its addresses is private."""
    listed = list(addresses)
    if not private and not all(map(is_public_address, listed)):
        raise AddressRefused
    return listed[0]


class WebhookSender:
    """Sends the deliveries of one process; several processes share the work by claiming rows."""

    def __init__(self, boards: Boards, settings: Settings, log: ServerLog) -> None:
        self._boards, self._settings, self._log = boards, settings, log
        self._under_way: dict[asyncio.Task[None], str] = {}
        self._results: list[DeliveryResult] = []
        self._finished = asyncio.Event()
        self._client: httpx.AsyncClient | None = None
        # Its own threads: neither the database nor a resolver that hangs takes those of requests.
        self._database_thread = ThreadPoolExecutor(1, "webhook-rows")
        self._resolvers = ThreadPoolExecutor(16, "webhook-names")

    async def run(self) -> None:
        """Send what is due, once a second or when there is room, until the task is cancelled."""
        loop = asyncio.get_running_loop()
        next_minute = next_day = loop.time()
        try:
            while True:
                time = loop.time()
                minute, day = time >= next_minute, time >= next_day
                next_minute = time + 60 if minute else next_minute
                next_day = time + 86_400 if day else next_day
                with suppress(StorageFailed):  # it is tried again, and requests report it
                    await self._run_once(minute=minute, day=day)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_TICK_SECONDS):
                        await self._finished.wait()
                self._finished.clear()
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            for task in list(self._under_way):
                task.cancel()  # due again when its claim ends
            if self._client is not None:
                await self._client.aclose()
            with suppress(LadderboardError, TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._in_thread(self._record)
            self._resolvers.shutdown(wait=False, cancel_futures=True)
            self._database_thread.shutdown(wait=False)

    async def _run_once(self, *, minute: bool, day: bool) -> None:
        try:
            await self._in_thread(self._look_after, minute, day)
            under_way = list(self._under_way.values())
            for delivery in await self._in_thread(self._claim, under_way):
                task = asyncio.create_task(self._deliver(delivery))
                self._under_way[task] = urlsplit(delivery.url).netloc
                task.add_done_callback(self._finish)
        except StorageFailed:
            raise
        except Exception as error:  # noqa: BLE001 - it must go on, and the log says why
            self._log.write_error(error)

    def _finish(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self._finished.set()

    async def _in_thread(self, work: Callable[..., Any], *values: object) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._database_thread, work, *values)

    def _look_after(self, minute: bool, day: bool) -> None:
        boards = self._boards
        if minute:
            announce_deadlines(boards.storage, boards.open)
        if day:
            delete_old_deliveries(boards.storage, boards.environment.clock())

    def _record(self) -> None:
        count = len(self._results)  # others are added meanwhile
        with suppress(LadderboardError):
            record_delivery_results(
                self._boards.storage, self._results[:count], self._boards.environment.clock()
            )
            del self._results[:count]

    def _claim(self, under_way: list[str]) -> list[Delivery]:
        """Record the results so far, and claim what is due and can be sent now."""
        self._record()
        boards, now = self._boards, self._boards.environment.clock()
        room, busy = _MAX_UNDER_WAY - len(under_way), Counter(under_way)
        chosen: list[DueDelivery] = []
        for due in list_due_deliveries(boards.storage.query_tables, now, _MAX_DUE):
            host = urlsplit(due.url).netloc
            if len(chosen) < room and busy[host] < _MAX_PER_HOST:
                busy[host] += 1
                chosen.append(due)
        return claim_and_sign_deliveries(
            boards.storage, boards.open, chosen, now, self._settings.url
        )

    async def _deliver(self, delivery: Delivery) -> None:
        delivered, final = False, False
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                status = await self._send(delivery)
            delivered, result = 200 <= status < 300, f"answered {status}"
            if 300 <= status < 400:
                result += "; redirects are not followed"
        except TimeoutError:
            result = f"no answer within {TIMEOUT_SECONDS:g} seconds"
        except AddressRefused:
            result, final = "not sent: its address is not public", True
        except Exception as error:  # noqa: BLE001 - whatever a receiver does is a result
            result = f"not sent: {_describe_failure(error)}"
        self._results.append(DeliveryResult(delivery, delivered, result, final))

    async def _send(self, delivery: Delivery) -> int:
        """Send a delivery to an address that was checked; return the status of the answer."""
        import httpx  # noqa: PLC0415 - needed by servers with webhooks only

        url = httpx.URL(delivery.url)
        port = url.port or (443 if url.scheme == "https" else 80)
        loop = asyncio.get_running_loop()
        resolved = await loop.run_in_executor(
            self._resolvers, socket.getaddrinfo, url.host, port, 0, socket.SOCK_STREAM
        )
        address = choose_address(
            (str(item[4][0]) for item in resolved), private=self._settings.webhook_private
        )
        # The name is for the certificate and the Host header only.
        headers = {**delivery.headers, "Host": url.netloc.decode(), "User-Agent": "Ladderboard"}
        extensions = {"sni_hostname": url.host} if url.scheme == "https" else {}
        if self._client is None:  # it reads certificates, so there is one for all deliveries
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
            self._client = httpx.AsyncClient(
                verify=httpx.create_ssl_context(),  # with SSL_CERT_FILE, but without proxies
                trust_env=False,
                timeout=2 * TIMEOUT_SECONDS,
                limits=limits,
            )
        async with self._client.stream(
            "POST",
            url.copy_with(host=address),
            content=delivery.body,
            headers=headers,
            extensions=extensions,
        ) as response:
            return int(response.status_code)


def _describe_failure(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "its host is unknown"
    return "the connection failed"
