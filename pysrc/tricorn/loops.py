"""Event loops: asyncio's own with libuv for a selector, and libuv inside a loop that is not ours."""

import asyncio
import contextlib
import contextvars
import selectors
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from tricorn import _core
from tricorn.errors import StartupError
from tricorn.importer import import_from_string

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

LOOPS: dict[str, str | None] = {
    "auto": "tricorn.loops:UvEventLoop",
    "asyncio": "tricorn.loops:UvEventLoop",
    "uvloop": "uvloop:new_event_loop",
    "none": None,
}

_WAKING_SIGNAL = signal.SIGURG
"""A signal that no application handles; see `UvEventLoop.run_forever`."""

_END_SECONDS = 1.0


def factory_of(name: str) -> LoopFactory | None:
    """The loop factory of that name or `module:attribute`; None leaves the choice to asyncio."""
    target = LOOPS.get(name, name)
    if target is None:
        return None
    try:
        factory = import_from_string(target)
    except StartupError as error:
        hint = f" Install it with: pip install {name}" if name in LOOPS else ""
        raise StartupError(f"Cannot use event loop {name!r}. {error}{hint}") from error.__cause__
    if not callable(factory):
        raise StartupError(f"Cannot use event loop {name!r}. It is not callable.")
    return cast("LoopFactory", factory)


class UvSelector(selectors.DefaultSelector):
    """The stock selector, with the core's loop in front of it.

    The core waits for its own sockets and, through one descriptor, for everything registered here; the stock
    selector is asked only when that descriptor fires. The core's backend descriptor is never given to the stock
    selector: its key is kept aside, and is reported when requests are ready for Python.
    """

    def __init__(self, core: _core.Loop) -> None:
        super().__init__()
        self.core = core
        self._backend_fd = core.backend_fd
        self._aside: selectors.SelectorKey | None = None
        self._keys = _Keys(super().get_map(), self)
        core.watch(self.fileno())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0) if self.core.poll(timeout) else []
        if self._aside is not None and self.core.ready:
            ready.append((self._aside, selectors.EVENT_READ))
        return ready

    def register(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> selectors.SelectorKey:
        if fileobj != self._backend_fd:
            return super().register(fileobj, events, data)
        if self._aside is not None:
            raise KeyError(f"{fileobj!r} (FD {self._backend_fd}) is already registered")
        return self._keep_aside(events, data)

    def modify(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> selectors.SelectorKey:
        if fileobj != self._backend_fd:
            return super().modify(fileobj, events, data)
        if self._aside is None:
            raise KeyError(f"{fileobj!r} is not registered")
        return self._keep_aside(events, data)

    def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        if fileobj != self._backend_fd or self._aside is None:
            return super().unregister(fileobj)
        key, self._aside = self._aside, None
        return key

    def get_map(self) -> Mapping["FileDescriptorLike", selectors.SelectorKey]:
        stock = super().get_map()
        return self._keys if stock is not None else stock  # None once it is closed

    def aside(self) -> selectors.SelectorKey | None:
        """The key that the stock selector does not know."""
        return self._aside

    def close(self) -> None:
        self._aside = None
        self.core.close()
        super().close()

    def _keep_aside(self, events: int, data: Any) -> selectors.SelectorKey:
        self._aside = selectors.SelectorKey(self._backend_fd, self._backend_fd, events, data)
        return self._aside


class _Keys(Mapping["FileDescriptorLike", selectors.SelectorKey]):
    """The stock selector's map and the key kept aside, as one."""

    def __init__(self, stock: Mapping["FileDescriptorLike", selectors.SelectorKey], selector: UvSelector) -> None:
        self._stock = stock
        self._selector = selector

    def __getitem__(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        aside = self._selector.aside()
        return aside if aside is not None and fileobj == aside.fd else self._stock[fileobj]

    def __iter__(self) -> Iterator["FileDescriptorLike"]:
        yield from self._stock
        aside = self._selector.aside()
        if aside is not None:
            yield aside.fd

    def __len__(self) -> int:
        return len(self._stock) + (self._selector.aside() is not None)


class UvEventLoop(asyncio.SelectorEventLoop):
    """asyncio's loop on libuv. Everything of asyncio works on it unchanged."""

    def __init__(self) -> None:
        self.core = _core.Loop()
        super().__init__(UvSelector(self.core))
        self.add_reader(self.core.backend_fd, self.core.dispatch)

    def run_forever(self) -> None:
        """Run as asyncio's loop does, with signals waking it.

        libuv goes back to sleep when a signal interrupts it, so that Python's handlers need asyncio's wakeup
        descriptor. asyncio arms it while any handler of its own is set, and disarms it with the last one; the
        one set here is never the application's to remove.
        """
        if threading.current_thread() is not threading.main_thread():
            super().run_forever()
            return
        previous = signal.getsignal(_WAKING_SIGNAL)
        self.add_signal_handler(_WAKING_SIGNAL, _nothing)
        try:
            super().run_forever()
        finally:
            if not self.is_closed():
                self.remove_signal_handler(_WAKING_SIGNAL)
            signal.signal(_WAKING_SIGNAL, previous or signal.SIG_DFL)


def _nothing() -> None:
    pass


def new_event_loop() -> asyncio.AbstractEventLoop:
    return UvEventLoop()


class Attachment(Protocol):
    """A core loop that a running event loop drives."""

    core: _core.Loop

    def wake(self) -> None:
        """The core was told something outside a turn: let it act on it soon."""

    def detach(self) -> None:
        """Drive it no longer. The servers on it must have been closed."""


def attach(event_loop: asyncio.AbstractEventLoop) -> Attachment:
    """The core loop that the event loop runs on, or a new one that it will drive."""
    return _Native(event_loop) if isinstance(event_loop, UvEventLoop) else _Hosted(event_loop)


class _Native:
    """On our own loop: its selector drives the core, before and after."""

    def __init__(self, event_loop: UvEventLoop) -> None:
        self.core = event_loop.core

    def wake(self) -> None:
        pass

    def detach(self) -> None:
        pass


class _Hosted:
    """In another loop: a turn when libuv's descriptor fires, when output appears, when a libuv timer is due."""

    def __init__(self, event_loop: asyncio.AbstractEventLoop) -> None:
        self.core = _core.Loop()
        self._event_loop = event_loop
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        # A turn starts other requests' tasks: they must not inherit the context of the one that asked for it.
        self._context = contextvars.copy_context()
        self.core.on_dirty = self.wake
        event_loop.add_reader(self.core.backend_fd, self._turn)
        self.wake()

    def wake(self) -> None:
        if self._soon is None:
            self._soon = self._event_loop.call_soon(self._turn, context=self._context)

    def detach(self) -> None:
        self.core.on_dirty = None
        self._event_loop.remove_reader(self.core.backend_fd)
        self._cancel_soon()
        self._cancel_timer()
        self.core.close()

    def _turn(self) -> None:
        self._cancel_soon()
        seconds = self.core.turn()
        if seconds is None:
            self._cancel_timer()
        elif seconds <= 0:
            self.wake()
        else:
            self._arm(self._event_loop.time() + seconds)

    def _arm(self, when: float) -> None:
        """One timer. An earlier one stays: it costs a turn without work, re-arming each time costs more."""
        if self._timer is not None and self._timer.when() <= when:
            return
        self._cancel_timer()
        self._timer = self._event_loop.call_at(when, self._due, context=self._context)

    def _due(self) -> None:
        self._timer = None
        self._turn()

    def _cancel_soon(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def run(main: Coroutine[Any, Any, None], factory: LoopFactory | None) -> None:
    """asyncio.run, except that a task which swallows its cancellation does not hold up the end."""
    event_loop = factory() if factory is not None else asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(event_loop)
        _run_to_its_end(event_loop, main)
    finally:
        try:
            event_loop.run_until_complete(_wind_up(event_loop))
        finally:
            asyncio.set_event_loop(None)
            event_loop.close()


def _run_to_its_end(event_loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine; an interrupt from outside cancels it and lets it tidy up."""
    task = event_loop.create_task(main)
    try:
        event_loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                event_loop.run_until_complete(task)
        raise


async def _wind_up(event_loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left and close asynchronous generators, each for a bounded time."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_END_SECONDS)
    await asyncio.wait({asyncio.ensure_future(event_loop.shutdown_asyncgens())}, timeout=_END_SECONDS)
