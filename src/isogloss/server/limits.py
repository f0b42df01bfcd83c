"""What one key may ask for: requests a minute, and requests at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from isogloss.server.errors import RateLimitError

_MINUTE = 60.0


class _Account:
    """What one key has left, refilled continuously."""

    def __init__(self, left: float, at: float) -> None:
        self.left = left
        self.at = at
        self.running = 0


class Limits:
    """The limits of every key. ``None`` is no limit."""

    def __init__(
        self, per_minute: int | None, at_once: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_minute = per_minute
        self._at_once = at_once
        self._clock = clock
        self._accounts: dict[str, _Account] = {}

    @contextmanager
    def request(self, holder: str) -> Iterator[None]:
        """One request, for as long as the block lasts. Raises `RateLimitError`."""
        account = self._accounts.setdefault(holder, _Account(self._per_minute or 0, self._clock()))
        if self._at_once is not None and account.running >= self._at_once:
            raise RateLimitError(
                f"Rate limit reached on concurrent requests: Limit {self._at_once}. Please try again later.",
                retry_after=1,
            )
        if self._per_minute is not None:
            self._take(account, self._per_minute)
        account.running += 1
        try:
            yield
        finally:
            account.running -= 1

    def _take(self, account: _Account, per_minute: int) -> None:
        now = self._clock()
        rate = per_minute / _MINUTE
        account.left = min(float(per_minute), account.left + (now - account.at) * rate)
        account.at = now
        if account.left < 1:
            seconds = (1 - account.left) / rate
            raise RateLimitError(
                f"Rate limit reached on requests per min (RPM): Limit {per_minute}. "
                f"Please try again in {seconds:.3g}s.",
                retry_after=math.ceil(seconds),
            )
        account.left -= 1
