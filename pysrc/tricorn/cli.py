"""The `tricorn` command: click options made from the table in flags.py and the fields of Config."""

import dataclasses
import enum
import platform
import types
from collections.abc import Callable, Iterable
from typing import Any, get_args, get_type_hints

import click

import tricorn
from tricorn.config import Config
from tricorn.flags import GROUPS, Flag
from tricorn.loops import LOOPS
from tricorn.server import run

ENV_PREFIXES = ("TRICORN_", "UVICORN_")
SINGLE_LISTENER = ("host", "port", "uds", "fd")


class GroupedOption(click.Option):
    """An option that knows its heading in --help."""

    def __init__(self, *args: Any, group: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose --help has a heading for each group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if isinstance(param, click.Option) and record is not None:
                groups.setdefault(getattr(param, "group", "Other"), []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


def loop_name(value: str) -> str:
    """A known event loop, or module:factory."""
    if value not in LOOPS and ":" not in value:
        raise click.BadParameter(f"{value!r} is not one of {', '.join(LOOPS)}, and not module:factory.")
    return value


def header_pair(value: str) -> tuple[str, str]:
    """A response header as Name:Value."""
    name, colon, text = value.partition(":")
    if not colon or not name:
        raise click.BadParameter(f"{value!r} is not Name:Value.")
    return name, text


SPECIAL_TYPES: dict[str, Callable[[str], object]] = {"loop": loop_name, "headers": header_pair}
REPEATABLE = {"headers", "bind", "tls_bind"}


def options() -> Iterable[click.Option]:
    """Every option of the command, in the order of --help."""
    hints = get_type_hints(Config)
    defaults = {field.name: _shown_default(field.default) for field in dataclasses.fields(Config)}
    for group, flags in GROUPS.items():
        for flag in flags:
            yield _option(flag, group, hints.get(flag.field, str), defaults.get(flag.field, ""))


def _option(flag: Flag, group: str, hint: Any, default: Any) -> click.Option:
    switch = (flag.name or flag.field).replace("_", "-")
    kind = _simple_type(hint)
    many = flag.field in REPEATABLE
    toggle = f"--{switch}/--no-{switch}" if kind is bool and flag.field != "factory" else f"--{switch}"
    shown = not many and default not in (None, "", False)
    return GroupedOption(
        [toggle, flag.field],
        group=group,
        help=flag.help,
        type=_click_type(flag, kind),
        is_flag=kind is bool,
        default=None if many else default,
        multiple=many,
        metavar=flag.metavar,
        show_default=shown,
        envvar=[prefix + flag.field.upper() for prefix in ENV_PREFIXES],
    )


def _shown_default(default: Any) -> Any:
    if default is dataclasses.MISSING:  # it is made when the Config is
        return None
    return int(default) if isinstance(default, enum.IntEnum) else default


def _click_type(flag: Flag, kind: type) -> Any:
    if flag.choices:
        return click.Choice(flag.choices, case_sensitive=any(choice != choice.lower() for choice in flag.choices))
    return SPECIAL_TYPES.get(flag.field) or (kind if kind in (bool, int, float) else str)


def _simple_type(hint: Any) -> type:
    """bool, int or float where the field is one or may be None; str for everything else."""
    members = [member for member in get_args(hint) or (hint,) if member is not types.NoneType]
    return members[0] if len(members) == 1 and members[0] in (bool, int, float) else str


def _check_listeners(ctx: click.Context, params: dict[str, Any]) -> None:
    if not params["bind"] and not params["tls_bind"]:
        return
    given = click.core.ParameterSource.COMMANDLINE
    for name in SINGLE_LISTENER:
        if ctx.get_parameter_source(name) is given:
            raise click.UsageError(f"--{name} cannot be combined with --bind or --tls-bind.", ctx)


def _print_version(ctx: click.Context, _: click.Parameter, value: object) -> None:
    if value and not ctx.resilient_parsing:
        python = f"{platform.python_implementation()} {platform.python_version()}"
        click.echo(f"Running tricorn {tricorn.__version__} with {python} on {platform.system()}")
        ctx.exit()


@click.pass_context
def _serve(ctx: click.Context, /, app: str, **params: Any) -> None:
    _check_listeners(ctx, params)
    run(app, **{name: value for name, value in params.items() if value is not None})


main = GroupedCommand(
    "tricorn",
    callback=_serve,
    help="Serve APP, an ASGI application as module:attribute.",
    epilog="Every option can also be set as TRICORN_NAME or UVICORN_NAME in the environment.",
    params=[
        click.Argument(["app"], envvar=[prefix + "APP" for prefix in ENV_PREFIXES]),
        *options(),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Show the version and exit.",
        ),
    ],
)
