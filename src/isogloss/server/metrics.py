"""What the server counts and measures, for Prometheus: ``GET /metrics``."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from isogloss.constraints.compilation import COMPILED_GRAMMARS
from isogloss.server.admission import Admission

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """One server's metrics, in a registry of their own."""

    def __init__(self, admission: Admission) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Levels(admission))
        self.requests = self._counter("requests", "Requests answered, by route and status.", "route", "status")
        self.request_seconds = self._seconds(
            "request_seconds", "Time from a request to the end of its answer.", "route"
        )
        self.first_token_seconds = self._seconds(
            "time_to_first_token_seconds", "Time from the wish for a turn to its first sign, waiting included."
        )
        self.tokens = self._counter("tokens", "Tokens, by kind: prompt, cached, completion, reasoning.", "kind")
        self.malformed = self._counter("malformed", "Output that looked like a call and was none.", "dialect")
        self.failures = self._counter("failed_turns", "Turns that ended in an error, by its code.", "code")

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, told: str, *labels: str) -> Counter:
        return Counter(f"isogloss_{name}", told, labels, registry=self.registry)

    def _seconds(self, name: str, told: str, *labels: str) -> Histogram:
        return Histogram(f"isogloss_{name}", told, labels, buckets=_SECONDS, registry=self.registry)


class _Levels(Collector):
    """What is known elsewhere, read when it is asked for."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("isogloss_running", "Generations that run.", self._admission.running)
        yield GaugeMetricFamily("isogloss_waiting", "Generations that wait for the engine.", self._admission.waiting)
        cache = COMPILED_GRAMMARS
        yield GaugeMetricFamily("isogloss_grammar_cache_entries", "Compiled grammars that are kept.", len(cache))
        yield GaugeMetricFamily("isogloss_grammar_cache_bytes", "Their estimated size.", cache.size)
        lookups = CounterMetricFamily(
            "isogloss_grammar_cache_lookups", "Grammars asked for, by whether they were kept.", labels=["result"]
        )
        lookups.add_metric(["hit"], cache.hits)
        lookups.add_metric(["miss"], cache.misses)
        yield lookups
