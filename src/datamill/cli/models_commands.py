"""`datamill models ...`: small local models."""

from dataclasses import asdict
from typing import Annotated

import typer

from datamill.cli.session import Session


def register(app: typer.Typer) -> None:
    """Add the command group to the tree."""
    group = typer.Typer(
        help="Small local models, checked by sha256 and cached.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("list")(list_all)
    group.command("pull")(pull)
    app.add_typer(group, name="models")


def list_all(context: typer.Context) -> None:
    """Models known by name and whether they are cached."""
    session: Session = context.obj
    from datamill.services.models import list_models

    models = list_models()
    lines = [f"{m.name:<10} {'ready' if m.ready else 'absent':<8} template {m.template:<8} {m.summary}" for m in models]
    session.result([{**asdict(m), "folder": str(m.folder)} for m in models], "\n".join(lines))


def pull(context: typer.Context, name: Annotated[str, typer.Argument(help="tiny or smollm2")]) -> None:
    """Fetch or make a model and put it into the cache."""
    session: Session = context.obj
    from datamill.errors import DatamillError, ExitCode, nearest
    from datamill.services.models import list_models, resolve_model

    known = [model.name for model in list_models()]
    if name not in known:
        raise DatamillError(
            "DM-CLI-005", f"there is no model `{name}` to pull", exit_code=ExitCode.USAGE, nearest=nearest(name, known),
            expected=" or ".join(known),
        )  # fmt: skip
    path, template = resolve_model(name, tell=session.say)
    session.result({"name": name, "path": path, "template": template}, path)
