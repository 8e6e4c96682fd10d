"""The house's own lints: costly mistakes that no general linter knows.

Each is a pure function of a file's text or path, and is itself tested in
`tests/architecture/test_house.py`, where it is also run over the whole tree.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path, PurePath


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that breaks a law of the house."""

    line: int
    what: str


# Whoever reads a clock, sleeps or rolls dice by himself cannot be simulated or tested without waiting.
_CLOCKS = frozenset(
    {
        "asyncio.sleep",
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "time.clock_gettime",
        "time.gmtime",
        "time.localtime",
        "time.monotonic",
        "time.monotonic_ns",
        "time.perf_counter",
        "time.perf_counter_ns",
        "time.sleep",
        "time.time",
        "time.time_ns",
        "uuid.uuid1",
        "uuid.uuid4",
    }
)
_SLEEPS = frozenset({"asyncio.sleep", "time.sleep"})

# Keywords in one case throughout, at the start of a string: prose ("Select a file") is neither.
_SQL = re.compile(
    r"""\s*(?:
        select\s+(?:\d|\*|\w+\s*\(|.*\bfrom\s+\w)  | SELECT\b
      | insert\s+(?:or\s+\w+\s+)?into\s            | INSERT\b
      | update\s+\w+\s+(?:as\s+\w+\s+)?set\s       | UPDATE\b
      | delete\s+from\s+\w                         | DELETE\s+FROM\b
      | replace\s+into\s                           | REPLACE\s+INTO\b
      | with\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\)\s*)?as\s*(?:not\s+)?(?:materialized\s*)?\( | WITH\b
      | (?:create|drop|alter)\s+(?:unique\s+)?(?:table|index|view|trigger)\s
      | (?:CREATE|DROP|ALTER)\s+(?:UNIQUE\s+)?(?:TABLE|INDEX|VIEW|TRIGGER)\s
    )""",
    re.DOTALL | re.VERBOSE,
)

_VAGUE = frozenset(
    {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils", "utilities"}
)

_MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:root|work|home|Users)/[\w.-]+")

# In pieces, so that this file stands under its own law.
_REGISTRIES = re.compile(
    "|".join(
        re.escape(".".join(host))
        for host in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("yarnpkg", "com"),
            ("crates", "io"),
            ("anaconda", "org"),
            ("rubygems", "org"),
        )
    )
    + r"|https?://\S+/simple\b"
)

_MADE = frozenset({"__pycache__", "build", "demo-out", "dist", "node_modules"})


def clock_words(tree: ast.AST) -> list[Finding]:
    """Uses of a clock, of sleep and of unseeded randomness, under whatever name they were imported."""
    return _uses(tree, lambda word: word in _CLOCKS or _is_unseeded(word)) + _unseeded_generators(tree)


def sleeps(tree: ast.AST) -> list[Finding]:
    """Uses of sleep: a test waits for a signal instead. `sleep(0)` lets others run, and is no waiting."""
    yields = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and _are_zero(node.args)]
    return _uses(tree, _SLEEPS.__contains__, besides=yields)


def hidden_imports(tree: ast.AST) -> list[Finding]:
    """Imports inside functions, where cycles hide."""
    return [
        Finding(inner.lineno, f"import hidden in {function.name}()")
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(function)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]


def foreign_imports(tree: ast.AST, allowed: Collection[str]) -> list[Finding]:
    """Imports of anything but the standard library and the packages (or their parts) in `allowed`."""
    return [
        Finding(line, f"imports {module}")
        for module, line in _imported_modules(tree)
        if module.partition(".")[0] not in sys.stdlib_module_names
        and not any(module == name or module.startswith(f"{name}.") for name in allowed)
    ]


def sql_literals(tree: ast.AST) -> list[Finding]:
    """Strings that are SQL statements; docstrings may talk about SQL."""
    prose = _docstrings(tree)
    return [
        Finding(node.lineno, f"SQL outside a .sql file: {node.value.strip()[:40]!r}")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node not in prose
        and _SQL.match(node.value)
    ]


def vague_names(path: PurePath) -> list[Finding]:
    """Files and folders whose name says nothing about what is inside."""
    return [
        Finding(1, f"a name that says nothing: {part}")
        for part in path.parts
        if _VAGUE & set(part.partition(".")[0].lower().split("_"))
    ]


def vague_classes(tree: ast.AST) -> list[Finding]:
    """Classes called ...Manager, ...Helper, ...Utils."""
    return [
        Finding(node.lineno, f"a name that says nothing: {node.name}")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and _VAGUE & {word.lower() for word in re.findall(r"[A-Z][a-z0-9]*", node.name)}
    ]


def machine_paths(text: str) -> list[Finding]:
    """Absolute paths that exist on one person's machine only."""
    return _matches(text, _MACHINE_PATH, "path of one machine")


def registry_hosts(text: str) -> list[Finding]:
    """Host names of package registries: a pin is `name==version`, wherever it is fetched from."""
    return _matches(text, _REGISTRIES, "package registry")


def find_words(text: str, words: Collection[str], what: str) -> list[Finding]:
    """Occurrences of any of `words`, as they are written."""
    return _matches(text, re.compile("|".join(map(re.escape, words))), what)


def listed_files(root: Path) -> list[Path]:
    """The files of the tree under `root`: what git tracks or would track, or all where git cannot say."""
    paths = _known_to_git(root)
    if paths is None:
        paths = [path for path in root.rglob("*") if not _is_made(path.relative_to(root))]
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def text_of(path: Path) -> str | None:
    """The file's text, or None if it is binary."""
    content = path.read_bytes()
    return None if b"\0" in content[:8192] else content.decode("utf-8", errors="replace")


def _known_to_git(root: Path) -> list[Path] | None:
    if not (root / ".git").exists() or shutil.which("git") is None:
        return None
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        check=False,  # git refuses a checkout that belongs to another user; then the walk has to do
    )
    if listing.returncode != 0:
        return None
    return [root / name for name in listing.stdout.decode().split("\0") if name]


def _is_made(path: Path) -> bool:
    """Whether a file was made by building or running, rather than written."""
    return bool(_MADE & set(path.parts)) or any(part[0] == "." for part in path.parts[:-1] if part != ".ci")


def _uses(tree: ast.AST, banned: Callable[[str], bool], besides: Collection[ast.expr] = ()) -> list[Finding]:
    origins = _origins(tree)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr) and node not in besides]
    words = ((node, _dotted(node, origins)) for node in nodes)
    return [Finding(node.lineno, word) for node, word in words if word is not None and banned(word)]


def _are_zero(arguments: list[ast.expr]) -> bool:
    return [ast.unparse(argument) for argument in arguments] == ["0"]


def _is_unseeded(word: str) -> bool:
    return word.startswith("random.") and word != "random.Random" and not word.startswith("random.Random.")


def _unseeded_generators(tree: ast.AST) -> list[Finding]:
    origins = _origins(tree)
    return [
        Finding(node.lineno, "random.Random() without a seed")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and not node.args and _dotted(node.func, origins) == "random.Random"
    ]


def _origins(tree: ast.AST) -> dict[str, str]:
    """Local name -> where it comes from, for every import in the file."""
    origins: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                origins[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return origins


def _dotted(node: ast.AST, origins: dict[str, str]) -> str | None:
    match node:
        case ast.Name(id=name):
            return origins.get(name)
        case ast.Attribute(value=value, attr=attribute):
            base = _dotted(value, origins)
            return None if base is None else f"{base}.{attribute}"
        case _:
            return None


def _imported_modules(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or ".", node.lineno)


def _docstrings(tree: ast.AST) -> set[ast.AST]:
    owners = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }


def _matches(text: str, pattern: re.Pattern[str], what: str) -> list[Finding]:
    return [
        Finding(number, f"{what}: {match[0]}")
        for number, line in enumerate(text.splitlines(), start=1)
        for match in pattern.finditer(line)
    ]
