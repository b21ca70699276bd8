"""The command tree, global options, and the way from exceptions to exit codes.

Commands live in modules of their own and load what they need when they run, so `datamill --help` stays fast.
"""

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer._click import exceptions as click_errors

from datamill import __version__
from datamill.cli.session import Session, hoist_globals, may_ask, wants_color
from datamill.errors import DatamillError, ExitCode

EPILOG = """Examples:

  datamill ask "clean data/web.jsonl: English only, no near-duplicates" -o out/

  datamill run out/plan.yaml

  datamill train out/plan.yaml --method less -n

Global options may stand before or after the command. Exit codes: 0 ok, 1 a step failed, 2 usage, 3 plan or settings
invalid, 4 approval needed or refused, 5 a quality gate failed, 6 missing dependency, 7 budget exceeded,
130 interrupted."""

COMMAND_MODULES = ("ask", "chat", "plan", "run", "runs", "data", "train", "models", "report", "ops", "doctor", "config")

app = typer.Typer(
    name="datamill",
    help="From a sentence to a reviewed data workflow, clean data and a trained model.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"datamill {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    context: typer.Context,
    project: Annotated[Path | None, typer.Option("--project", help="project folder (default: here)")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on stdout")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="results and errors only")] = False,
    verbose: Annotated[int, typer.Option("-v", "--verbose", count=True, help="reasons; -vv: tracebacks")] = 0,
    no_color: Annotated[bool, typer.Option("--no-color", help="plain text")] = False,
    no_input: Annotated[bool, typer.Option("--no-input", help="never ask")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Options every command takes."""
    folder = (project or Path.cwd()).resolve()
    if not folder.is_dir():
        raise DatamillError("DM-CLI-002", f"there is no folder `{project}`", exit_code=ExitCode.USAGE)
    context.obj = Session(folder, as_json, quiet, verbose, wants_color(no_color), may_ask(no_input))


def load_commands() -> typer.Typer:
    """The app with every command registered."""
    for name in COMMAND_MODULES:
        importlib.import_module(f"datamill.cli.{name}_commands").register(app)
    return app


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code."""
    words = hoist_globals(arguments)
    command = typer.main.get_command(load_commands())
    plain = Session(Path.cwd(), json="--json" in words, verbose=words.count("-v") + 2 * words.count("-vv"))
    plain.color = wants_color("--no-color" in words)
    try:
        result = command.main(args=words, prog_name="datamill", standalone_mode=False)
    except click_errors.NoArgsIsHelpError as error:
        error.show()
        return ExitCode.USAGE
    except click_errors.ClickException as error:
        return _usage(plain, error)
    except (typer.Abort, KeyboardInterrupt):
        plain.say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader (`| head`) has what it wanted
        _discard_stdout()
        return ExitCode.OK
    except (DatamillError, OSError) as error:
        return _failed(plain, error if isinstance(error, DatamillError) else _file_trouble(error))
    return int(result) if isinstance(result, int) else ExitCode.OK


def _failed(session: Session, error: DatamillError) -> int:
    session.error(error)
    if session.verbose > 1:
        traceback.print_exc()
    return error.exit_code


def _discard_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):  # a stdout without a descriptor has nothing to send
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _file_trouble(error: OSError) -> DatamillError:
    """A disk that is full, a folder that cannot be written: the person can act on it."""
    where = error.filename2 or error.filename
    return DatamillError(
        "DM-CLI-007", f"{error.strerror or error}", file=str(where) if where else None,
        fix="datamill doctor, or choose another folder with --project",
    )  # fmt: skip


def _usage(session: Session, error: click_errors.ClickException) -> int:
    context = getattr(error, "ctx", None)
    fix = f"{context.command_path} --help" if context is not None else "datamill --help"
    session.error(DatamillError("DM-CLI-001", error.format_message(), exit_code=ExitCode.USAGE, fix=fix))
    return ExitCode.USAGE
