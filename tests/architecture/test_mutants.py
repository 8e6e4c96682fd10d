"""The mutants' runner finds survivors and stale records, and leaves the checkout alone."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

import mutants

ROOT = Path(__file__).parents[2]

PRODUCT = "LIMIT = 3\n\ndef allowed(n: int) -> bool:\n    return 0 < n <= LIMIT\n"
TESTS = "from forge import allowed\ndef test_limit(): assert allowed(3) and not allowed(4)\n"
KILLED = ("limit-is-ignored", "<= LIMIT", "< 1000")
SURVIVOR = ("zero-is-allowed", "0 < n", "0 <= n")  # the tests above never ask for 0
STALE = ("text-is-gone", "n == LIMIT", "True")
AMBIGUOUS = ("text-is-there-twice", "LIMIT", "9")
BREAKS_IMPORT = ("does-not-even-load", "LIMIT = 3", "LIMIT = no_such_name")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in miniature: a product, its tests, and a folder for records."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # 0.3 s a run instead of 1.4
    for folder in ("src", "tests/mutants"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/forge.py").write_text(PRODUCT)
    (tmp_path / "tests/test_forge.py").write_text(TESTS)
    return tmp_path


def record(house: Path, *records: tuple[str, str, str], tests: str = "tests/test_forge.py") -> None:
    text = "".join(
        f"[[mutant]]\nname = {name!r}\nguard = 'a guard'\nfile = 'src/forge.py'\n"
        f"find = {find!r}\nreplace = {replace!r}\ntests = [{tests!r}]\n"
        for name, find, replace in records
    )
    (house / "tests/mutants/forge.toml").write_text(text)


def test_every_record_of_this_house_fits_its_code() -> None:
    assert mutants.problems(mutants.read_mutants(ROOT / mutants.RECORDS), ROOT) == []


def test_a_mutant_that_the_tests_notice_passes(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(house, KILLED)

    assert mutants.main([], house) == 0
    assert "1 mutants, 1 noticed by the tests, 0 not" in capsys.readouterr().out
    assert (house / "src/forge.py").read_text() == PRODUCT


def test_a_survivor_fails_the_run(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(house, KILLED, SURVIVOR)

    assert mutants.main([], house) == 1
    said = capsys.readouterr().out
    assert "SURVIVED" in said
    assert "2 mutants, 1 noticed by the tests, 1 not" in said


def test_a_mutant_that_does_not_load_proves_nothing(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(house, BREAKS_IMPORT)

    assert mutants.main([], house) == 1
    assert "UNDECIDED" in capsys.readouterr().out


def test_tests_that_fail_by_themselves_prove_nothing(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(house, KILLED)
    (house / "tests/test_forge.py").write_text("def test_limit(): assert False\n")

    assert mutants.main([], house) == 1
    assert "no verdict would mean anything" in capsys.readouterr().out


def test_a_hanging_test_is_cut_off(house: Path) -> None:
    (house / "tests/test_forge.py").write_text("import threading\ndef test_it(): threading.Event().wait()\n")

    code, output = mutants.run_tests(house, ["tests/test_forge.py"], timeout_seconds=0.5)

    assert (code, output) == (-1, "cut off after 0.5 s")


def test_what_is_cut_off_goes_with_its_children(tmp_path: Path) -> None:
    line = str(tmp_path / "line")
    child = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({line!r}); s.recv(1)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(30)
        server.bind(line)
        server.listen()
        process = mutants.start([sys.executable, "-c", parent], tmp_path)
        connection, _ = server.accept()

        mutants.kill(process)

        with connection:
            connection.settimeout(30)
            assert connection.recv(1) == b""  # the line is dead: so is the grandchild that held it


@pytest.mark.parametrize(
    ("unfit", "words"),
    [
        (STALE, "text-is-gone: its text occurs 0 times in src/forge.py, not once"),
        (AMBIGUOUS, "text-is-there-twice: its text occurs 2 times in src/forge.py, not once"),
        (("idle", "0 < n", "0 < n"), "idle: it changes nothing"),
        (("empty", "", "x"), "empty: its text occurs 0 times"),
    ],
    ids=["stale", "ambiguous", "idle", "empty"],
)
def test_a_record_that_does_not_fit_stops_the_run(
    house: Path, capsys: pytest.CaptureFixture[str], unfit: tuple[str, str, str], words: str
) -> None:
    record(house, KILLED, unfit)

    assert mutants.main([], house) == 2
    assert words in capsys.readouterr().out


def test_missing_tests_doubled_names_and_unknown_names_stop_the_run(
    house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(house, KILLED, KILLED, tests="tests/test_gone.py::test_it")

    assert mutants.main(["no-such-guard"], house) == 2
    said = capsys.readouterr().out
    assert "limit-is-ignored: two mutants have this name" in said
    assert "limit-is-ignored: there is no tests/test_gone.py::test_it" in said
    assert "no-such-guard: no such mutant" in said


def test_an_empty_folder_of_records_is_no_success(house: Path) -> None:
    assert mutants.main([], house) == 2


def test_a_record_with_a_missing_or_unknown_field_is_refused(house: Path) -> None:
    (house / "tests/mutants/forge.toml").write_text("[[mutant]]\nname = 'x'\nfiel = 'y'\n")

    with pytest.raises(mutants.RecordError, match=r"forge.toml: a mutant has .*file.*; this one: name, fiel"):
        mutants.read_mutants(house / mutants.RECORDS)


def test_only_the_named_mutants_are_tried(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(house, KILLED, SURVIVOR)

    assert mutants.main([KILLED[0]], house) == 0
    assert mutants.main(["--list", SURVIVOR[0]], house) == 0
    assert capsys.readouterr().out.endswith("zero-is-allowed: a guard\n")
