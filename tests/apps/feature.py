"""The register of features: functions by name, which the features application runs."""

from collections.abc import Callable, Coroutine

Feature = Callable[[], Coroutine[None, None, None]]
features: dict[str, Feature] = {}


def feature(function: Feature) -> Feature:
    features[name_of(function)] = function
    return function


def name_of(function: Feature) -> str:
    return getattr(function, "__name__")  # noqa: B009 a callable need not have one
