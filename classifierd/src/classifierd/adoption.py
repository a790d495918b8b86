"""Which published table the filesystem adopted: its own word for it, read from its status."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Offer:
    """A table that was published and is not adopted or refused yet."""

    generation: int
    kind: str  # the candidate whose table it is
    basis: str  # its evidence, in words for people


def model_of(status: Mapping[str, object]) -> Mapping[str, object]:
    """The model in a status answer; empty where the filesystem tells nothing of it."""
    model = status.get("model")
    return model if isinstance(model, dict) else {}


def settled(offer: Offer, status: Mapping[str, object]) -> bool:
    """Log what became of the table; False while the filesystem has not looked at it yet."""
    model = model_of(status)
    looked_at, generation = model.get("looked_at"), model.get("generation")
    if not isinstance(looked_at, int):  # an older filesystem, which does not say
        log.info("model %d offered: %s", offer.generation, offer.basis)
        return True
    if looked_at < offer.generation:
        return False
    if generation == offer.generation and model.get("stored") is not True:
        log.info("model %d (%s) adopted: %s", offer.generation, offer.kind, offer.basis)
    else:
        log.warning("model %d was refused by the filesystem: %s",
                    offer.generation, model.get("refusal") or "no reason given")  # fmt: skip
    return True
