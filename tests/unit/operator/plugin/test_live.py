from __future__ import annotations

from collections.abc import Sequence

import pytest

from ots_tunnel_operator.plugin.kubectl import KubectlFailed
from ots_tunnel_operator.plugin.live import LOOKS, Course, fleet_frame, follow
from ots_tunnel_operator.plugin.text.screen import Screen
from tests.support.operator.plugin_objects import NOW, healthy, unseen


class Looks:
    """Frames that are drawn, and the keys that are pressed between them; a frame that is an error is raised."""

    def __init__(self, frames: Sequence[str | Exception], keys: Sequence[str] = ()) -> None:
        self._frames, self._keys = list(frames), list(keys)
        self.drawn: list[str] = []

    def frame(self) -> list[str]:
        found = self._frames.pop(0)
        if isinstance(found, Exception):
            raise found
        return [found]

    def draw(self, lines: Sequence[str]) -> None:
        self.drawn.append(" / ".join(lines))

    def wait(self, seconds: float) -> str:
        return self._keys.pop(0)


def test_a_key_that_ends_the_view_ends_it_and_any_other_looks_at_once() -> None:
    looks = Looks(["one", "two", "three"], keys=["x", "", "", "q"])

    follow(looks.frame, looks.draw, looks.wait, interval=3600, looks=None)

    assert looks.drawn == ["one", "two"]


def test_a_number_of_looks_is_kept() -> None:
    looks = Looks(["one", "two", "three"], keys=["x"])

    follow(looks.frame, looks.draw, looks.wait, interval=3600, looks=2)

    assert looks.drawn == ["one", "two"]


def test_a_look_that_fails_is_shown_and_tried_again() -> None:
    looks = Looks([KubectlFailed("no route"), "two"], keys=["x", "q"])

    follow(looks.frame, looks.draw, looks.wait, interval=3600, looks=None)

    assert looks.drawn == ["the cluster did not answer: no route / tried again", "two"]


def test_a_single_look_that_fails_is_an_error() -> None:
    looks = Looks([KubectlFailed("no route")])

    with pytest.raises(KubectlFailed, match="no route"):
        follow(looks.frame, looks.draw, looks.wait, interval=3600, looks=1)


def test_the_course_has_a_gap_for_a_look_in_which_nothing_is_known_and_forgets_old_looks() -> None:
    course = Course()
    for objects in [[healthy()], [unseen()], *[[healthy(), healthy()]] * LOOKS]:
        course.add(objects)

    assert list(course.rates) == [10600] * LOOKS
    course.add([unseen()])
    assert (course.lags[-1], course.rates[-1]) == (None, None)
    assert course.lines(Screen(width=40))[0].endswith(" -")


def test_a_frame_is_never_higher_than_the_terminal() -> None:
    lines = fleet_frame([healthy()] * 50, Course(), Screen(width=80, height=20), NOW, everywhere=False)

    assert len(lines) == 20
    assert "36 more lines" in lines[-3] or "more lines" in lines[-3]
