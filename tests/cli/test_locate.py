"""The app is found by every name that people give it, and what is wrong with it is said with its own line."""

from __future__ import annotations

import pytest

from rota.app import Rota
from rota.cli.exits import Wrong
from rota.cli.locate import USUAL, find_app, reference

SOURCE = "from rota import Rota\napp = Rota()\n"


def refusal(given, configured=None):
    with pytest.raises(Wrong) as wrong:
        find_app(given, configured)
    return wrong.value.message


@pytest.mark.parametrize("given", ["shop_a.py", "shop_a.py:app", "shop_a:app", "shop_a", "./shop_a.py"])
def test_an_app_is_found_by_file_or_module_with_or_without_its_name(tmp_path, given):
    (tmp_path / "shop_a.py").write_text(SOURCE)

    assert isinstance(find_app(given), Rota)


@pytest.mark.parametrize("given", ["pack_a/jobs.py", "pack_a.jobs:app", "pack_a/jobs.py:app"])
def test_an_app_in_a_package_keeps_its_relative_imports(tmp_path, given):
    (tmp_path / "pack_a").mkdir()
    (tmp_path / "pack_a" / "__init__.py").write_text("")
    (tmp_path / "pack_a" / "names.py").write_text("NAME = 1\n")
    (tmp_path / "pack_a" / "jobs.py").write_text("from .names import NAME\n" + SOURCE)

    assert isinstance(find_app(given), Rota)


def test_an_app_in_another_directory_is_found_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "shop_b.py").write_text(SOURCE)

    assert isinstance(find_app(str(tmp_path / "far" / "shop_b.py")), Rota)


@pytest.mark.parametrize("name", USUAL)
def test_without_a_name_the_usual_files_are_looked_at(tmp_path, name):
    (tmp_path / name).write_text(SOURCE)

    assert reference(None) == name


def test_a_usual_file_that_does_not_speak_of_rota_is_not_imported(tmp_path):
    (tmp_path / "app.py").write_text("raise SystemExit('imported by mistake')")
    (tmp_path / "main.py").write_text(SOURCE)

    assert reference(None) == "main.py"


def test_the_configured_app_comes_before_the_usual_files_and_after_the_given_one(tmp_path):
    (tmp_path / "jobs.py").write_text(SOURCE)

    assert reference(None, "other.py") == "other.py"
    assert reference("given.py", "other.py") == "given.py"


def test_no_app_anywhere_says_how_to_name_one():
    assert refusal(None) == (
        "no app was named, and none of jobs.py, app.py, tasks.py, main.py here has one. Write module:attr or "
        'file.py:attr, or put `app = "jobs.py"` into rota.toml. `rota init` writes a first one.'
    )


def test_a_missing_file_is_answered_with_the_nearest_one(tmp_path):
    (tmp_path / "jobs.py").write_text(SOURCE)

    assert refusal("job.py").startswith("there is no file 'job.py'. Did you mean 'jobs.py'?")


def test_a_missing_module_is_told_from_a_module_that_misses_another(tmp_path):
    (tmp_path / "shop_c.py").write_text("import not_installed_anywhere\n")

    assert refusal("no_such_module:app").startswith(
        "there is no module 'no_such_module' on the path, which begins with "
    )
    assert refusal("shop_c:app").startswith(
        "shop_c:app could not be imported: ModuleNotFoundError: No module named 'not_in"
    )


@pytest.mark.parametrize(
    ("source", "error", "line"),
    [
        ("x = 1\ny = x / 0\n", "ZeroDivisionError: division by zero", 2),
        ("def broken(:\n", "SyntaxError: invalid syntax", 1),
        ("from rota import Rota\nRota().task(3)\n", "TaskError: @app.task needs a function, not 3.", 2),
    ],
)
def test_an_error_of_the_app_is_shown_with_the_line_where_it_is(tmp_path, source, error, line):
    name = f"shop_{error[:4].lower()}"
    (tmp_path / f"{name}.py").write_text(source)

    words = refusal(f"{name}.py")

    assert f"could not be imported: {error}" in words
    assert words.count(f"{name}.py, line {line})") == 1
    assert words.endswith("Run again with -v for the traceback.")


def test_a_wrong_attribute_is_answered_with_the_right_one(tmp_path):
    (tmp_path / "shop_d.py").write_text(SOURCE + "other = 3\n")

    assert refusal("shop_d.py:ap") == (
        "'shop_d.py:ap': 'ap' does not exist in shop_d. Did you mean 'app'? An app is made by `app = Rota()`."
    )
    assert "'other' is not a Rota app in shop_d. Did you mean 'app'?" in refusal("shop_d.py:other")


def test_a_module_without_an_app_says_so(tmp_path):
    (tmp_path / "shop_e.py").write_text("from rota import Rota\n")

    assert refusal("shop_e.py").startswith(
        "'shop_e.py' has no Rota app: nothing in it is made by `app = Rota()`."
    )


def test_several_apps_must_be_told_apart_but_two_names_of_one_need_not(tmp_path):
    (tmp_path / "shop_f.py").write_text("from rota import Rota\nmail = Rota()\nfeed = Rota()\n")
    (tmp_path / "shop_g.py").write_text(SOURCE + "rota = app\n")

    assert refusal("shop_f.py") == "'shop_f.py' has 2 apps (feed, mail); say which: shop_f.py:feed."
    assert isinstance(find_app("shop_g.py"), Rota)


def test_a_directory_is_no_app(tmp_path):
    (tmp_path / "pack_b").mkdir()

    assert refusal("./pack_b").startswith("'pack_b' is a directory, and an app is in a file.")


def test_what_cannot_be_a_name_is_said_to_name_no_app():
    assert refusal("not a name").startswith("'not a name' names no app.")
