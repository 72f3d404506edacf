"""Proxies: who is believed when it says for whom it asks."""

import ipaddress

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

__all__ = ["check_proxies"]


def check_proxies(listed: str) -> None:
    """Refuse what is no list of addresses and networks.

    A name would be compared with addresses and never fit, and "*" would believe everybody.

    >>> check_proxies("127.0.0.1, ::1, 10.0.0.0/24")
    """
    for each in listed.split(","):
        try:
            right = ipaddress.ip_network(each.strip()).prefixlen > 0  # or it were all there are
        except ValueError:
            right = False
        if not right:
            raise InvalidSetting(
                "proxy must be addresses like 127.0.0.1 or networks like 10.0.0.0/24, with commas "
                f"between; got {_settings.shown(each.strip())}."
            )
