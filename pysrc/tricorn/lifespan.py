"""The ASGI lifespan: the application's start-up and shutdown."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from tricorn.asgi import Message, Scope
from tricorn.errors import users_part

if TYPE_CHECKING:
    from tricorn.config import Config

_GRACE_SECONDS = 1.0

logger = logging.getLogger("tricorn.error")


class Lifespan:
    """Runs the lifespan call of an application in one task, from before the first request until after the last.

    `state` is what the application leaves for its requests. `should_exit` is set when start-up or shutdown failed
    in a way that the mode (auto, on, off) does not allow.
    """

    def __init__(self, config: "Config") -> None:
        self.config = config
        self.state: dict[str, Any] = {}
        self.should_exit = False
        self._mode = config.lifespan
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._started = asyncio.Event()
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failed = False
        self._errored = False

    async def startup(self) -> None:
        """Until the application is ready or has failed; then see `should_exit`."""
        if self._mode == "off":
            return
        logger.info("Waiting for application startup.")
        self._task = asyncio.create_task(self._call())
        await self._tell("lifespan.startup", self._started, self.config.timeout_startup)
        if self._failed or (self._errored and self._mode == "on"):
            logger.error("Application startup failed. Exiting.")
            self.should_exit = True
            await self._end(grace=_GRACE_SECONDS if self._started.is_set() else 0)
        else:
            logger.info("Application startup complete.")

    async def shutdown(self, limit: float | None = None) -> None:
        """Until the application has ended, for a bounded time if `limit` is given. Idempotent."""
        if self._task is None or self._errored or self._failed:
            return
        logger.info("Waiting for application shutdown.")
        await self._tell("lifespan.shutdown", self._stopped, limit)
        if self._failed or self._errored:
            logger.error("Application shutdown failed. Exiting.")
            self.should_exit = True
        else:
            logger.info("Application shutdown complete.")
        await self._end(grace=_GRACE_SECONDS if self._stopped.is_set() else 0)

    async def abandon(self) -> None:
        """End the application's task without asking, within a bounded time."""
        await self._end(grace=0)

    async def _tell(self, message: str, answered: asyncio.Event, limit: float | None) -> None:
        self._inbox.put_nowait({"type": message})
        try:
            async with asyncio.timeout(limit or None):
                await answered.wait()
        except TimeoutError:
            logger.error("No answer to %s within %g seconds.", message, limit)  # noqa: TRY400 one line
            self._failed = True
        except asyncio.CancelledError:
            await self._end(grace=0)
            raise

    async def _end(self, *, grace: float) -> None:
        """Let the task return by itself for `grace` seconds, then cancel it; never wait for ever."""
        if self._task is None:
            return
        task, self._task = self._task, None
        if grace:
            await asyncio.wait({task}, timeout=grace)
        task.cancel()
        await asyncio.wait({task}, timeout=_GRACE_SECONDS)

    async def _call(self) -> None:
        scope: Scope = {
            "type": "lifespan",
            "asgi": {"version": self.config.asgi_version, "spec_version": "2.0"},
            "state": self.state,
        }
        try:
            await self.config.loaded_app(scope, self._inbox.get, self._send)
        except (KeyboardInterrupt, SystemExit):
            self._errored = True
            raise
        except BaseException as error:
            self._errored = True
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                raise
            self._report(error)
        finally:
            self._started.set()
            self._stopped.set()

    def _report(self, error: BaseException) -> None:
        if self._failed:
            return
        if self._mode == "auto" and not self._started.is_set():
            logger.info("ASGI 'lifespan' protocol appears unsupported.")
        else:
            logger.error("Exception in 'lifespan' protocol\n", exc_info=users_part(error))

    async def _send(self, message: Message) -> None:
        stage, _, result = message["type"].removeprefix("lifespan.").partition(".")
        answered = {"startup": self._started, "shutdown": self._stopped}.get(stage)
        if answered is None or result not in ("complete", "failed"):
            raise RuntimeError(f"Unexpected ASGI message '{message['type']}' in the lifespan protocol.")
        if answered.is_set() or (stage == "shutdown" and not self._started.is_set()):
            raise RuntimeError(f"Unexpected ASGI message '{message['type']}' at this point of the lifespan protocol.")
        if result == "failed":
            self._failed = True
            if message.get("message"):
                logger.error(message["message"])
        answered.set()


def _is_being_cancelled() -> bool:
    """Whether somebody cancels this task, rather than the application raising CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
