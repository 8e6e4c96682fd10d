"""`tempa`: the root of the command line."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tempa import __version__
from tempa.cli import (
    accounts,
    backup,
    dead_letters,
    demo,
    dev,
    doctor,
    engine,
    jobs,
    keys,
    migrate,
    payments,
    run,
    serve,
    submit,
    up,
    webhooks,
)
from tempa.cli.exits import outcome_of
from tempa.cli.output import command_wants_json, fill_streams, note, print_json


class Root(TyperGroup):
    """Turns expected errors into words and exit codes; a traceback is for faults of our own."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        fill_streams()
        try:
            return super().invoke(ctx)
        except Exception as error:
            outcome = outcome_of(error)
            if outcome is None:
                raise
            if outcome.document is not None and command_wants_json(ctx):
                print_json(outcome.document)
            note("\n".join(outcome.lines))
            raise typer.Exit(outcome.code) from None


app = typer.Typer(
    name="tempa",
    cls=Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"tempa {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Tempa: a durable job server for geometry that takes minutes.

    Commands find the local server by themselves; TEMPA_URL and TEMPA_API_KEY name another one.
    People get text, pipes and --json get JSON. Exit codes: 0 ok, 1 another fault, 2 usage, 3 job
    failed, 4 canceled, 5 not reachable, 6 not authorised, 130 interrupted.
    """


app.command("up")(up.up)
app.command("serve")(serve.serve)
app.command("worker")(serve.worker)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("migrate")(migrate.migrate)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("submit")(submit.submit)
app.add_typer(run.app, name="run")
app.add_typer(jobs.app, name="jobs")
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(payments.app, name="payments")
app.add_typer(keys.app, name="keys")
app.add_typer(accounts.app, name="accounts")
app.add_typer(engine.app, name="engine")
app.add_typer(dev.app, name="dev")
