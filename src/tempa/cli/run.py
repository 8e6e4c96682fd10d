"""`tempa run`: a job from request to files in one command, with or without a server."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli import connect, watch
from tempa.cli.exits import UsageFault
from tempa.cli.output import Json, note
from tempa.cli.show import print_job
from tempa.cli.submit import Key, RequestFile, read_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tempa.client import Client, JobHandle

app = typer.Typer(help="From request to files in one command.", no_args_is_help=True)

_MESH_SUFFIXES = frozenset({".glb", ".gltf", ".stl", ".obj"})

Formats = Annotated[
    list[str] | None,
    typer.Option("--format", "-f", help="ply, compressed_ply, splat, ksplat, spz, sog, glb; again for more."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of the engine; again for more. `tempa engine ls --json` has all.",
    ),
]
Folder = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go.")]


@app.callback()
def run() -> None:
    """From request to files in one command."""


@app.command("cad")
def run_cad(
    file: RequestFile,
    output: Folder = Path("out"),
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Make a solid model: submit, wait, download, verify, and print what was measured.

    Uses the running server; without one it starts its own for the length of the command.
    """
    document = read_request(file)
    _make_folder(output)
    with _some_server() as (tempa, stays):
        handle = tempa.submit(document, idempotency_key=key)
        _finish(tempa, handle, output, as_json, stays=stays)


@app.command("splat")
def run_splat(
    picture: Annotated[str, typer.Argument(metavar="PICTURE", help="A picture or a mesh: a file or a URL.")],
    output: Folder = Path("out"),
    depth: Annotated[
        str | None, typer.Option(metavar="FILE", help="The picture's depth, grey: a file or a URL.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="relief-splat, or mesh-splat for .glb, .gltf, .stl and .obj; `tempa engine ls`."),
    ] = None,
    formats: Formats = None,
    num_gaussians: Annotated[
        int | None, typer.Option("--num-gaussians", "-n", help="How many; 131,072 by default.")
    ] = None,
    settings: Parameters = None,
    turntable: Annotated[int, typer.Option(help="Frames of a turntable; 0: none.")] = 0,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Make Gaussian splats of a picture: submit, wait, download, verify, and print what was measured.

    Uses the running server; without one it starts its own for the length of the command.
    """
    kind = "mesh" if engine == "mesh-splat" or (engine is None and _is_mesh(picture)) else "image"
    options = _options(engine or ("mesh-splat" if kind == "mesh" else None), formats, settings)
    if num_gaussians is not None:
        options["parameters"] = {**options.get("parameters", {}), "num_gaussians": num_gaussians}
    if turntable:
        options["preview"] = {"turntable_frames": turntable}
    given = _source(picture)
    image, mesh = (None, given) if kind == "mesh" else (given, None)
    deep = None if depth is None else _source(depth)
    _make_folder(output)
    with _some_server() as (tempa, stays):
        handle = tempa.generate_splat(image, mesh=mesh, depth=deep, idempotency_key=key, **options)
        _finish(tempa, handle, output, as_json, stays=stays)


@app.command("convert")
def run_convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of splats, or a URL.")],
    output: Folder = Path("out"),
    formats: Formats = None,
    settings: Parameters = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Convert a file of splats: submit, wait, download, verify, and print what was measured.

    Uses the running server; without one it starts its own for the length of the command.
    """
    options = _options(None, formats, settings)
    source = _source(file)
    _make_folder(output)
    with _some_server() as (tempa, stays):
        handle = tempa.convert(source, idempotency_key=key, **options)
        _finish(tempa, handle, output, as_json, stays=stays)


def _finish(tempa: Client, handle: JobHandle, output: Path, as_json: bool, *, stays: bool) -> None:
    note(f"{handle.id} {handle.ticket.status}")
    job = watch.wait(tempa, handle.id, stays=stays)
    files = tempa.download(job, output)
    print_job(job, as_json, files, stays=stays)


def _is_mesh(name: str) -> bool:
    return Path(name).suffix.lower() in _MESH_SUFFIXES


def _source(name: str) -> Path | str:
    """A URL as it stands, else a file of this machine. Raises UsageFault."""
    if name.startswith(("https://", "http://")):
        return name
    path = Path(name)
    if not path.is_file():
        raise UsageFault(f"There is no file {name}.")
    return path


def _options(engine: str | None, formats: Sequence[str] | None, settings: Sequence[str] | None) -> Any:
    options: dict[str, Any] = {"engine": engine} if engine else {}
    if formats:
        options["export_formats"] = [name for given in formats for name in given.split(",")]
    if settings:
        options["parameters"] = dict(_parameter(setting) for setting in settings)
    return options


def _parameter(setting: str) -> tuple[str, Any]:
    """`thickness=0.5`: the value is JSON, or else text."""
    name, equals, text = setting.partition("=")
    if not (name and equals):
        raise UsageFault(f"--set takes name=value; this is {setting!r}.")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


def _make_folder(folder: Path) -> None:
    """Before anything is asked for: a part that cannot be kept need not be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise UsageFault(f"{folder} cannot take the files: {error.strerror}. Name another with -o.") from None


@contextmanager
def _some_server() -> Iterator[tuple[Client, bool]]:
    """The server that is named or runs here; else one of our own. And whether it stays afterwards."""
    from tempa.client import NotReachable

    stays = True
    with ExitStack() as held:
        try:
            tempa = held.enter_context(connect.open_client())
            if tempa.server.origin == "ready file" and not connect.answers(tempa.server.url):
                raise NotReachable(0, "not-reachable", "The ready file is that of a server that is gone.")
        except NotReachable:
            tempa = held.enter_context(_own_client(held))
            stays = False
        yield tempa, stays


def _own_client(held: ExitStack) -> Client:
    from tempa.cli.local_server import passing_server
    from tempa.client import Client

    note("No server runs here; one is started for this command.")
    server = held.enter_context(passing_server())
    return Client(server["url"], server["api_key"])
