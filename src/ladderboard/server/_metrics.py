"""Numbers for whoever keeps the server: how many requests, how long, how many wait.

There is no label for a board, a team or an outcome but the status of a reply.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Metrics"]

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_Key = tuple[str, str]  # method and route


class _Times:
    """A histogram of durations."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.total = 0.0


class Metrics:
    """Counts requests, by the method, the template of the route, and the status."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = {}
        self._times: dict[_Key, _Times] = {}
        self.under_way = 0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        key = (method, route, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        times = self._times.get((method, route))
        if times is None:
            times = self._times[method, route] = _Times()
        times.counts[bisect_left(_BOUNDS, seconds)] += 1
        times.total += seconds

    def write(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> str:
        """Return the text that Prometheus reads; ``gauges`` are others' numbers, by name."""
        lines = ["# HELP ladderboard_requests_total Requests answered."]
        lines.append("# TYPE ladderboard_requests_total counter")
        for (method, route, status), many in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(f"ladderboard_requests_total{{{labels}}} {many}")
        lines.append("# HELP ladderboard_request_seconds How long requests took.")
        lines.append("# TYPE ladderboard_request_seconds histogram")
        for (method, route), times in sorted(self._times.items()):
            lines += _histogram(f'method="{method}",route="{route}"', times)
        for name, (help_, value) in gauges.items():
            lines += [f"# HELP {name} {help_}", f"# TYPE {name} gauge", f"{name} {value():g}"]
        return "\n".join([*lines, ""])


def _histogram(labels: str, times: _Times) -> list[str]:
    name, below, lines = "ladderboard_request_seconds", 0, []
    for bound, many in zip([*_BOUNDS, None], times.counts, strict=True):
        below += many
        end = "+Inf" if bound is None else f"{bound:g}"
        lines.append(f'{name}_bucket{{{labels},le="{end}"}} {below}')
    lines.append(f"{name}_sum{{{labels}}} {times.total:.6f}")
    lines.append(f"{name}_count{{{labels}}} {below}")
    return lines
