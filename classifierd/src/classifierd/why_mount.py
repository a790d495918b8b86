"""Why a mount places data as it does: the answer of the filesystem for its largest vStreams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from classifierd.adoption import model_of
from classifierd.control import ControlClient, socket_path
from classifierd.explain import size
from classifierd.records import BLOCK_BYTES
from classifierd.why import Memory, Why, number_of, of_row, shape_lines

_VSTREAMS_SHOWN = 20


@dataclass(frozen=True)
class WhyMount:
    """The placement of a mounted filesystem, as the filesystem reports it."""

    mount: str
    placement: str  # the mode: off, learned, hints, auto
    pstreams: int
    table: int  # generation of the daemon's model in use; 0: none
    kind: str  # of that model
    stored: bool  # whether an earlier mount's daemon stored that model
    refused: int  # models that the filesystem refused
    vstreams: list[Why]  # the most written ones, largest first
    written_bytes: list[int]  # by each of them
    vstreams_known: int


def why_mount(mount: Path, state_dir: Path | None) -> WhyMount:
    """Ask the filesystem mounted there. Raises ControlError if none is."""
    with ControlClient(socket_path(mount)) as client:
        status, _ = client.request("status")
        answer, _ = client.request("streams")
    listed = answer.get("streams")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    rows.sort(key=lambda row: number_of(row, "written_bytes"), reverse=True)
    memory = Memory.of(status, rows, state_dir)
    shown = rows[:_VSTREAMS_SHOWN]
    model = model_of(status)
    return WhyMount(
        str(mount),
        str(status.get("placement", "")),
        number_of(status, "pstreams"),
        number_of(model, "generation") if model.get("adopted") is True else 0,
        str(model.get("kind", "")),
        model.get("stored") is True,
        number_of(model, "refused"),
        [of_row(row, memory) for row in shown],
        [number_of(row, "written_bytes") for row in shown],
        len(rows),
    )


def as_json(found: WhyMount) -> dict[str, object]:
    """The same as plain values."""
    return asdict(found)


def lines(found: WhyMount) -> Iterator[str]:
    """Yield the answer as sentences: the model in use, then one line for each vStream."""
    yield f"{found.mount}: placement {found.placement} on {found.pstreams} pStreams"
    if found.table:
        source = ", from its state directory," if found.stored else ""
        yield f"  model {found.table} ({found.kind}) of the daemon{source} decides"
    else:
        yield "  no model of classifierd is in use"
    if found.refused:
        yield f"  refused models: {found.refused}; the filesystem's log says why"
    for each, written in zip(found.vstreams, found.written_bytes, strict=True):
        lives = size(each.lifetime_bytes / BLOCK_BYTES) if each.lifetime_bytes else "unknown"
        yield (
            f"  vStream {each.vstream}, by {each.source}: {each.label} → pStream {each.pstream}; "
            f"lifetime {lives}, {size(written / BLOCK_BYTES)} written"
        )
        for line in shape_lines(each):
            yield f"  {line}"
    left = found.vstreams_known - len(found.vstreams)
    if left:
        yield f"  {left} smaller vStreams are not listed; streamctl streams --all lists them"
