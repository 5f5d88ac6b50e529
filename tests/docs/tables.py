"""Tables that the code itself holds: exit codes, settings, log actions, metrics, known defects."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry

from ots_emulator.api.unsupported import HANDLERS as MISSING
from ots_emulator.ledger import EVERY, PROGRAMS
from ots_emulator.server.application import LEDGER
from ots_emulator.settings import RANGES
from ots_emulator.settings import Settings as EmulatorSettings
from ots_tunnel.config import ClientConfig, ConfigModel, DeliveryConfig, HttpConfig, RetryConfig, StreamClientConfig
from ots_tunnel.config.messages.field_texts import attribute_docstrings
from ots_tunnel.console.exit_codes import exit_code_table
from ots_tunnel.exposition import Registry
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.backoff import CALL_RETRY, READ_RETRY
from ots_tunnel.protocol.idle_read import IDLE_READ, TRICKLE_READ
from ots_tunnel.sinks.tally import Tally, TallyCollector
from ots_tunnel.worker.status.gauges import StatusCollector
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus
from ots_tunnel_operator.log_actions import LogAction as OperatorAction
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.settings import Settings as OperatorSettings
from tests.sharp_edges.edges import EDGES, Applies

SECTIONS: Mapping[str, type[ConfigModel]] = {
    "client": ClientConfig,
    "delivery": DeliveryConfig,
    "delivery.retry": RetryConfig,
    "http": HttpConfig,
}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def codes() -> str:
    """The exit codes of `ots-tunnel`."""
    return table(("exit code", "meaning"), exit_code_table())


def settings() -> str:
    """Settings of a worker's document that are plain values, with their defaults."""
    rows = [row for section, model in SECTIONS.items() for row in _settings_of(section, model)]
    return table(("setting", "default", "meaning"), rows)


def stream_settings() -> str:
    """Settings of the section `client` of a stream worker's document."""
    return table(("setting", "default", "meaning"), _settings_of("client", StreamClientConfig))


def _settings_of(section: str, model: type[ConfigModel]) -> Iterator[tuple[str, str, str]]:
    texts: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, ConfigModel):
            texts |= attribute_docstrings(each)
    for name, field in model.model_fields.items():
        if isinstance(field.default, int | float | str):
            default = str(field.default).lower() if isinstance(field.default, bool) else field.default
            shown = f"`{default}`" if default != "" else '`""`'
            yield f"`{section}.{field.alias}`", shown, texts.get(name, "")


def emulator_settings() -> str:
    """Settings of an emulator, with the range of each number."""
    texts = attribute_docstrings(EmulatorSettings)
    rows = (
        (f"`{each.name}`", f"`{_default(each.default)}`", _range(each.name), texts[each.name])
        for each in dataclasses.fields(EmulatorSettings)
    )
    return table(("setting", "default", "range", "meaning"), rows)


def _range(name: str) -> str:
    if name not in RANGES:
        return ""
    least, most = RANGES[name]
    return f"{least:,.0f} to {most:,.0f}"


def ledger() -> str:
    """What the emulator does, by operation, with how it is known; refused calls come together."""
    rows = []
    for entry in LEDGER:
        names = ", ".join(f"`{name}`" for name in entry.operations)
        shown = "the calls that are missing" if set(entry.operations) == set(MISSING) else names
        rows.append((shown.replace(f"`{EVERY}`", EVERY), entry.what, entry.evidence.value, entry.source))
    return table(("operation", "behaviour", "how it is known", "source"), rows)


def programs() -> str:
    """The programs whose tests and recordings the ledger names."""
    return table(
        ("program", "version", "repository"),
        ((each.name, each.version, f"https://github.com/{each.repository}") for each in PROGRAMS),
    )


def operator_settings() -> str:
    """Numbers of the operator's process."""
    return _fields(OperatorSettings)


def schedules() -> str:
    """Pauses between attempts, and between reads of a stream channel."""
    uses = {
        "a read (`READ_RETRY`)": READ_RETRY,
        "any other call (`CALL_RETRY`)": CALL_RETRY,
        "an empty read of a stream channel (`IDLE_READ`)": IDLE_READ,
        "a read of a channel in which records trickle (`TRICKLE_READ`)": TRICKLE_READ,
    }
    return table(
        ("between two tries of", "first", "factor", "cap", "jitter", "gives up after"),
        (
            (
                use,
                _seconds(each.initial),
                f"{each.factor:g}",
                _seconds(each.cap),
                f"{each.jitter:.0%}",
                "never" if math.isinf(each.total) else _seconds(each.total),
            )
            for use, each in uses.items()
        ),
    )


def worker_actions() -> str:
    """The values of `action` in the worker's log lines."""
    return _actions(LogAction)


def operator_actions() -> str:
    """The values of `action` in the operator's log lines."""
    return _actions(OperatorAction)


def worker_metrics() -> str:
    """The worker's metrics, those that the sink counts included."""
    metrics = WorkerMetrics("tunnel")
    metrics.registry.register(StatusCollector(WorkerStatus("id", "tag", metrics)))
    metrics.registry.register(TallyCollector("tunnel", Tally))
    return _metrics(metrics.registry)


def operator_metrics() -> str:
    """The operator's metrics."""
    return _metrics(OperatorMetrics().registry)


def go_edges() -> str:
    """Known defects of the vendor's Go worker."""
    return _edges("G")


def java_edges() -> str:
    """Known defects of the vendor's Java worker."""
    return _edges("J")


def _actions(actions: Iterable[LogAction | OperatorAction]) -> str:
    return table(
        ("action", "level", "meaning", "further keys"),
        (
            (
                f"`{action}`",
                ", ".join(action.levels),
                action.description,
                ", ".join(f"`{key}`" for key in action.keys),
            )
            for action in actions
        ),
    )


def _metrics(registry: CollectorRegistry | Registry) -> str:
    suffix = {"counter": "_total"}
    return table(
        ("metric", "kind", "meaning"),
        (
            (f"`{family.name}{suffix.get(family.type, '')}`", family.type, family.documentation)
            for family in registry.collect()
        ),
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"


def _fields(settings: type[OperatorSettings]) -> str:
    texts = attribute_docstrings(settings)
    rows = (
        (f"`{each.name}`", f"`{_default(each.default)}`", texts[each.name]) for each in dataclasses.fields(settings)
    )
    return table(("setting", "default", "meaning"), rows)


def _default(value: object) -> str:
    return "None" if value is None else str(value) or '""'


def _edges(worker: str) -> str:
    rows = (
        (f"**{name}**", edge.defect if isinstance(edge, Applies) else f"cannot apply: {edge.reason}")
        for name, edge in EDGES.items()
        if name.startswith(worker)
    )
    return table(("name", "defect"), rows)
