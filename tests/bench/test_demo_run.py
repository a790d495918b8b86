"""The rounds that count: when they start over, and that everything is counted over the same ones.

The programs are a script of how the peak of live data moves, the device is arithmetic.
"""

from dataclasses import replace
from typing import Any

import pytest
from bench.emulated.controls import MetaWords
from bench.emulated.run import ATTEMPTS, Counted, counted_rounds
from bench.emulated.ssd import SPARE, SPARE_TOLERANCE
from bench.programs.plan import QUICK
from bench.ssd import Counters

PHYSICAL = 1 << 30
ROUNDS = 3
ASKED_A_ROUND, WORDS_A_ROUND = 1000, 10


class World:
    """Programs whose k-th round leaves a peak of ``spares[k]``, above a ballast that can grow."""

    def __init__(self, spares: list[float]) -> None:
        self.peaks = [int(PHYSICAL / (1 + spare)) for spare in spares]
        self.rounds: list[int] = []
        self.ballast = self.peak = self.written = 0

    def ask(self, operation: str, **arguments: int) -> dict[str, Any]:
        """Do a round, or change the ballast."""
        if operation == "round":
            self.peak = max(self.peak, self.peaks[len(self.rounds)] + self.ballast)
            self.rounds.append(arguments["number"])
            self.written += 4096
        else:
            self.ballast += arguments["bytes"]
            self.peak = max(self.peak, self.peak + arguments["bytes"])
        return {"ok": True}

    def bytes_asked(self) -> int:
        """All rounds so far, the void ones included."""
        return ASKED_A_ROUND * len(self.rounds)

    def meta_words(self) -> MetaWords:
        """All rounds so far, the void ones included."""
        words = WORDS_A_ROUND * len(self.rounds)
        return MetaWords(words, 100 * words)

    def reset(self) -> None:
        """Count anew; the next round sets the peak."""
        self.peak = self.written = 0

    def counters(self) -> Counters:
        """The counters of a device of PHYSICAL bytes."""
        return Counters(self.written, self.written, 0, 0, max(self.peak, 1), PHYSICAL, 1, 2, 3)


def run(world: World) -> Counted:
    plan = replace(QUICK, counted_rounds=ROUNDS)
    return counted_rounds(world, world, world.meta_words, plan, lambda _: None)


GOOD = SPARE + 0.001


def test_rounds_within_the_tolerance_count_at_once() -> None:
    world = World([GOOD] * ROUNDS)
    counted = run(world)
    assert len(world.rounds) == ROUNDS
    assert counted.app_bytes == ROUNDS * ASKED_A_ROUND


def test_too_little_spare_starts_over_at_once_and_with_new_rounds() -> None:
    world = World([GOOD] + [SPARE - 2 * SPARE_TOLERANCE] * (1 + ROUNDS))
    counted = run(world)
    first = QUICK.warmup_rounds + 1
    assert world.rounds == list(range(first, first + 2 + ROUNDS))
    assert world.ballast < 0, "the ballast makes room for a peak that was too high"
    assert abs(counted.counters.effective_spare - SPARE) <= SPARE_TOLERANCE


def test_too_much_spare_at_the_end_starts_over_with_more_ballast() -> None:
    world = World([SPARE + 0.05] * 2 * ROUNDS)
    counted = run(world)
    assert len(world.rounds) == 2 * ROUNDS
    assert world.ballast > 0
    assert abs(counted.counters.effective_spare - SPARE) <= SPARE_TOLERANCE


def test_all_three_figures_are_of_the_last_attempt_only() -> None:
    world = World([SPARE - 2 * SPARE_TOLERANCE] * (1 + ROUNDS))
    counted = run(world)
    assert len(world.rounds) == 1 + ROUNDS
    assert counted.app_bytes == ROUNDS * ASKED_A_ROUND
    assert counted.counters.written_bytes == ROUNDS * 4096
    assert counted.meta_words == MetaWords(ROUNDS * WORDS_A_ROUND, 100 * ROUNDS * WORDS_A_ROUND)


@pytest.mark.parametrize("step", [-0.02, 0.02])
def test_spare_that_is_never_right_ends_after_the_last_attempt(step: float) -> None:
    class Stubborn(World):
        def ask(self, operation: str, **arguments: int) -> dict[str, Any]:
            """Refuse to let the ballast help."""
            return super().ask(operation, **arguments) if operation == "round" else {"ok": True}

    world = Stubborn([SPARE + step] * ATTEMPTS * ROUNDS)
    counted = run(world)
    assert counted.counters.effective_spare == pytest.approx(SPARE + step, abs=1e-6)
    assert len(world.rounds) == ROUNDS + (ATTEMPTS - 1) * (1 if step < 0 else ROUNDS)
