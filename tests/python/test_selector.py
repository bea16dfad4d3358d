"""How a core loop is driven: as asyncio's selector, and from a loop that is not ours.

The core is replaced by a stand-in that waits with poll(2) and counts, so that every turn is under the test's control.
"""

import asyncio
import os
import select
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator

import pytest
import uvloop

from tricorn import loops
from tricorn.loops import UvEventLoop, UvSelector


class StandIn:
    """What loops.py uses of `_core.Loop`; readiness and timers are set by hand."""

    def __init__(self) -> None:
        self.inner = select.epoll()
        self.poller = select.poll()
        self.poller.register(self.inner.fileno(), select.POLLIN)
        self.watched = -1
        self.waits: list[float | None] = []
        self.turns = 0
        self.due: float | None = None
        self.on_dirty: Callable[[], None] | None = None
        self.todo: list[Callable[[], object]] = []
        self.closed = False

    @property
    def backend_fd(self) -> int:
        return self.inner.fileno()

    @property
    def ready(self) -> bool:
        return bool(self.todo)

    def watch(self, fd: int) -> None:
        self.watched = fd
        self.poller.register(fd, select.POLLIN)

    def poll(self, timeout: float | None) -> bool:
        self.waits.append(timeout)
        if self.todo:
            timeout = 0
        milliseconds = None if timeout is None else max(0, timeout) * 1000
        fired = dict(self.poller.poll(milliseconds))
        self.read()
        return self.watched in fired

    def read(self) -> None:
        for fd, _ in self.inner.poll(0):
            self.todo.append(lambda fd=fd: os.read(fd, 1))

    def dispatch(self) -> None:
        todo, self.todo = self.todo, []
        for call in todo:
            call()

    def turn(self) -> float | None:
        self.turns += 1
        self.read()
        self.dispatch()
        due, self.due = self.due, None
        return due

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.inner.close()


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    monkeypatch.setattr(loops._core, "Loop", lambda: made)
    yield made
    made.close()


@pytest.fixture
def selector(core: StandIn) -> Iterator[UvSelector]:
    made = UvSelector(loops._core.Loop())
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


Pair = tuple[socket.socket, socket.socket]


# As a selector


def test_the_stock_selector_is_asked_only_when_its_descriptor_fires(
    selector: UvSelector, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    stock = selectors.DefaultSelector.select
    monkeypatch.setattr(selectors.DefaultSelector, "select", lambda self, t: asked.append(t) or stock(self, t))
    selector.register(pair[0], selectors.EVENT_READ, "data")
    assert selector.select(0) == []
    assert asked == []
    pair[1].send(b"x")
    [(key, events)] = selector.select(None)
    assert (key.data, events) == ("data", selectors.EVENT_READ)
    assert asked == [0]


@pytest.mark.parametrize("timeout", [0.05, 0, -1])
def test_timeouts_are_kept_with_nothing_registered(timeout: float, selector: UvSelector, core: StandIn) -> None:
    started = time.monotonic()
    assert selector.select(timeout) == []
    assert time.monotonic() - started >= timeout - 0.001
    assert core.waits == [timeout]


def test_the_backend_descriptor_is_kept_from_the_stock_selector(selector: UvSelector, core: StandIn) -> None:
    key = selector.register(core.backend_fd, selectors.EVENT_READ, "first")
    with pytest.raises(KeyError):
        selector.register(core.backend_fd, selectors.EVENT_READ)
    assert selector.get_key(core.backend_fd) is key
    assert dict(selector.get_map()) == {core.backend_fd: key}
    assert len(selector.get_map()) == 1
    assert selector.modify(core.backend_fd, selectors.EVENT_READ, "second").data == "second"
    assert selector.select(0) == []
    core.todo.append(lambda: None)
    assert [(key.data, events) for key, events in selector.select(None)] == [("second", selectors.EVENT_READ)]
    assert selector.unregister(core.backend_fd).data == "second"
    assert selector.select(0) == []
    with pytest.raises(KeyError):
        selector.unregister(core.backend_fd)
    with pytest.raises(KeyError):
        selector.modify(core.backend_fd, selectors.EVENT_READ)
    with pytest.raises(KeyError):
        selector.get_key(core.backend_fd)


def test_the_map_shows_both_kinds_of_keys(selector: UvSelector, core: StandIn, pair: Pair) -> None:
    selector.register(pair[0], selectors.EVENT_READ)
    selector.register(core.backend_fd, selectors.EVENT_READ)
    assert set(selector.get_map()) == {pair[0].fileno(), core.backend_fd}
    assert selector.get_map()[pair[0]].fd == pair[0].fileno()
    assert selector.get_map().get(pair[1].fileno()) is None


def test_requests_and_descriptors_are_reported_together(selector: UvSelector, core: StandIn, pair: Pair) -> None:
    selector.register(pair[0], selectors.EVENT_READ)
    selector.register(core.backend_fd, selectors.EVENT_READ)
    pair[1].send(b"x")
    core.todo.append(lambda: None)
    assert {key.fd for key, _ in selector.select(None)} == {pair[0].fileno(), core.backend_fd}


def test_a_descriptor_closed_while_registered_does_no_harm(selector: UvSelector, pair: Pair) -> None:
    selector.register(pair[0], selectors.EVENT_READ)
    pair[0].close()
    assert selector.select(0) == []


def test_closing_closes_the_core_first_and_behaves_as_the_stock_selector(core: StandIn, pair: Pair) -> None:
    selector = UvSelector(loops._core.Loop())
    selector.register(pair[0], selectors.EVENT_READ)
    selector.register(core.backend_fd, selectors.EVENT_READ)
    selector.close()
    assert core.closed
    assert selector.get_map() is None
    with pytest.raises(RuntimeError, match="closed"):
        selector.get_key(pair[0])


def test_our_loop_dispatches_from_its_selector(core: StandIn) -> None:
    event_loop = UvEventLoop()
    seen: list[str] = []
    core.todo.append(lambda: seen.append("dispatched"))
    event_loop.run_until_complete(asyncio.sleep(0.01))
    assert seen == ["dispatched"]
    attachment = loops.attach(event_loop)
    assert attachment.core is core
    attachment.detach()
    assert not core.closed
    event_loop.close()
    assert core.closed


def test_signals_wake_our_loop_whatever_handlers_the_application_removes(core: StandIn) -> None:
    async def wakeup_descriptor() -> int:
        event_loop = asyncio.get_running_loop()
        event_loop.add_signal_handler(signal.SIGUSR1, print)
        event_loop.remove_signal_handler(signal.SIGUSR1)
        armed = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(armed)
        return armed

    before = signal.getsignal(signal.SIGURG)
    event_loop = UvEventLoop()
    assert event_loop.run_until_complete(wakeup_descriptor()) >= 0
    assert signal.getsignal(signal.SIGURG) == before
    event_loop.close()


# In a loop that is not ours


FOREIGN = [asyncio.SelectorEventLoop, uvloop.new_event_loop]


@pytest.fixture(params=FOREIGN, ids=["asyncio", "uvloop"])
def foreign(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    event_loop = request.param()
    yield event_loop
    event_loop.close()


def run(event_loop: asyncio.AbstractEventLoop, seconds: float = 0.02) -> None:
    event_loop.run_until_complete(asyncio.sleep(seconds))


def test_attaching_takes_one_turn_to_arm_the_watchers(foreign: asyncio.AbstractEventLoop, core: StandIn) -> None:
    attachment = loops.attach(foreign)
    run(foreign)
    assert core.turns == 1
    attachment.detach()


def test_the_backend_descriptor_gives_a_turn(foreign: asyncio.AbstractEventLoop, core: StandIn, pair: Pair) -> None:
    attachment = loops.attach(foreign)
    run(foreign)
    core.inner.register(pair[0], select.EPOLLIN)
    pair[1].send(b"x")
    run(foreign)
    assert core.turns == 2
    attachment.detach()
    pair[1].send(b"x")
    run(foreign)
    assert core.turns == 2
    assert core.closed
    assert core.on_dirty is None


def test_output_outside_a_turn_gives_one_turn_however_often_it_is_told(
    foreign: asyncio.AbstractEventLoop, core: StandIn
) -> None:
    attachment = loops.attach(foreign)
    run(foreign)
    assert core.on_dirty is not None
    for _ in range(5):
        core.on_dirty()
    run(foreign)
    assert core.turns == 2
    attachment.detach()


def test_a_timer_gives_a_turn_when_it_is_due(foreign: asyncio.AbstractEventLoop, core: StandIn) -> None:
    attachment = loops.attach(foreign)
    core.due = 0.05
    run(foreign, 0.02)
    assert core.turns == 1
    run(foreign, 0.08)
    assert core.turns == 2
    attachment.detach()


def test_an_earlier_timer_is_kept_and_a_later_one_is_replaced(
    foreign: asyncio.AbstractEventLoop, core: StandIn
) -> None:
    attachment = loops.attach(foreign)
    core.due = 60.0
    run(foreign)
    core.due = 0.02
    attachment.wake()
    run(foreign, 0.01)
    core.due = 60.0
    attachment.wake()
    run(foreign, 0.05)
    assert core.turns == 4
    attachment.detach()


def test_work_left_over_gives_the_next_turn_at_once(foreign: asyncio.AbstractEventLoop, core: StandIn) -> None:
    attachment = loops.attach(foreign)
    core.due = 0.0
    run(foreign)
    assert core.turns == 2
    attachment.detach()


def test_nothing_fires_after_detaching(foreign: asyncio.AbstractEventLoop, core: StandIn) -> None:
    attachment = loops.attach(foreign)
    core.due = 0.01
    run(foreign, 0.001)
    attachment.wake()
    attachment.detach()
    turns = core.turns
    run(foreign, 0.05)
    assert core.turns == turns
