"""What `module:attribute` may name, and what is said when it names nothing."""

import os.path
from pathlib import Path

import pytest

from tricorn.importer import ImportFromStringError, import_from_string


def test_finds_a_nested_attribute() -> None:
    assert import_from_string("os:path.join") is os.path.join


def test_returns_what_is_not_a_string() -> None:
    assert import_from_string(test_finds_a_nested_attribute) is test_finds_a_nested_attribute


@pytest.mark.parametrize("text", ["os", "os:", ":path", ""])
def test_both_halves_are_needed(text: str) -> None:
    with pytest.raises(ImportFromStringError) as raised:
        import_from_string(text)
    assert str(raised.value) == f'Import string "{text}" must be in format "<module>:<attribute>".'


@pytest.mark.parametrize("module", ["no_such_module", "no_such_package.module", "os.no_such"])
def test_names_the_module_that_is_missing(module: str) -> None:
    with pytest.raises(ImportFromStringError) as raised:
        import_from_string(f"{module}:app")
    assert str(raised.value) == f'Could not import module "{module}".'
    assert raised.value.__cause__ is None


def test_names_the_attribute_that_is_missing() -> None:
    with pytest.raises(ImportFromStringError) as raised:
        import_from_string("os:path.nope")
    assert str(raised.value) == 'Attribute "path.nope" not found in module "os".'


@pytest.mark.parametrize(("body", "error"), [("1 / 0", ZeroDivisionError), ("import no_such_module", ImportError)])
def test_a_module_that_fails_shows_only_its_own_frames(
    body: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / f"failing_{error.__name__}.py"
    module.write_text(body)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportFromStringError) as raised:
        import_from_string(f"{module.stem}:app")
    cause = raised.value.__cause__
    assert isinstance(cause, error)
    assert cause.__traceback__ is not None
    assert cause.__traceback__.tb_frame.f_code.co_filename == str(module)
