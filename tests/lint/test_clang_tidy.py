"""Which files .ci/clang_tidy.py --quick looks at."""

from pathlib import Path

from clang_tidy import that_show

LAMP, LAMP_H = Path("base/lamp.cc"), Path("base/lamp.h")
ROOM, DOOR = Path("data/room.cc"), Path("data/door.cc")
REACHED = {LAMP: {LAMP, LAMP_H}, ROOM: {ROOM, LAMP_H}, DOOR: {DOOR}}


def test_a_changed_source_is_looked_at() -> None:
    assert that_show({DOOR}, REACHED) == {DOOR}


def test_a_changed_header_is_looked_at_once_through_the_source_of_its_name() -> None:
    assert that_show({LAMP_H}, REACHED) == {LAMP}


def test_a_source_looked_at_anyway_shows_its_headers() -> None:
    assert that_show({LAMP_H, ROOM}, REACHED) == {ROOM}


def test_what_no_source_reaches_is_left_out() -> None:
    assert that_show({Path("base/unused.h"), Path("README.md")}, REACHED) == set()
