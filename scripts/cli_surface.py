"""Write the command line's surface to tests/golden/cli: every `--help`, and the set of commands and flags.

A change of the surface is deliberate: run this, look at the diff, commit it.
    python scripts/cli_surface.py
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.update(COLUMNS="100", NO_COLOR="1", TERM="dumb")

import typer
from typer._click import Context

from datamill.cli.app import load_commands

FOLDER = Path(__file__).parents[1] / "tests" / "golden" / "cli"


def commands(command: Any, parent: Context | None = None, name: str = "datamill") -> Iterator[tuple[str, Any, Context]]:
    """Every command of the tree with its full name and context."""
    context = Context(command, info_name=name.rsplit(" ", 1)[-1], parent=parent, **command.context_settings)
    yield name, command, context
    for word in sorted(getattr(command, "commands", {})):
        yield from commands(command.commands[word], context, f"{name} {word}")


def surface() -> dict[str, str]:
    """File names and what they should hold."""
    files, flags = {}, []
    for name, command, context in commands(typer.main.get_command(load_commands())):
        files[f"{name.replace(' ', '_')}.txt"] = command.get_help(context).rstrip() + "\n"
        words = [word for parameter in command.params for word in _words(parameter)]
        flags.append(f"{name}: {' '.join(sorted(words))}".rstrip())
    return {**files, "surface.txt": "\n".join(flags) + "\n"}


def _words(parameter: Any) -> list[str]:
    if parameter.param_type_name == "argument":
        return [parameter.name.upper()]
    return [*parameter.opts, *parameter.secondary_opts]


def main() -> None:
    """Write every file, and delete those of commands that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = surface()
    for path in FOLDER.glob("*.txt"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(files)} files in {FOLDER}\n")


if __name__ == "__main__":
    main()
