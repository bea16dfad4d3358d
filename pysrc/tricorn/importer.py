"""Finds the object that `module:attribute` names."""

import importlib
from functools import reduce

from tricorn.errors import StartupError, users_part


class ImportFromStringError(StartupError):
    """The text does not lead to an object."""


def import_from_string(import_str: object) -> object:
    """Import `package.module:attribute.attribute`. What is not a string is returned as it is."""
    if not isinstance(import_str, str):
        return import_str
    module_name, _, attributes = import_str.partition(":")
    if not module_name or not attributes:
        raise ImportFromStringError(f'Import string "{import_str}" must be in format "<module>:<attribute>".')
    module = _import(module_name)
    try:
        return reduce(getattr, attributes.split("."), module)
    except AttributeError:
        message = f'Attribute "{attributes}" not found in module "{module_name}".'
        raise ImportFromStringError(message) from None


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ImportFromStringError(f'Could not import module "{name}".') from None
        raise ImportFromStringError(f'Module "{name}" failed.') from users_part(error)
    except Exception as error:  # noqa: BLE001 the application's, whatever it is
        raise ImportFromStringError(f'Module "{name}" failed.') from users_part(error)
