"""`await Server.serve()` in a loop that is already running: `python -m tests.support.in_our_loop uvloop APP ...`.

The first argument is asyncio or uvloop; everything behind it is as for the tricorn command.
"""

import asyncio
import contextlib
import sys
from typing import Any

import uvloop

import tricorn
from tricorn import cli


def run(app: str, *, app_dir: str | None = None, **options: Any) -> None:
    server = tricorn.Server(tricorn.Config(app, **options))

    async def main() -> None:
        await asyncio.sleep(0)
        await server.serve()

    factory = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}[kind]
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


if __name__ == "__main__":
    kind = sys.argv.pop(1)
    cli.run = run  # ty: ignore[invalid-assignment]
    cli.main()
