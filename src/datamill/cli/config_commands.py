"""`datamill config ...`: settings and where each value comes from."""

from typing import Annotated

import typer

from datamill.cli.session import Session, usage_error


def register(app: typer.Typer) -> None:
    """Add the command groups to the tree."""
    group = typer.Typer(help="Settings with the origin of each value.", no_args_is_help=True, rich_markup_mode=None)
    group.command("show")(show)
    group.command("set")(set_value)
    group.command("path")(path)
    app.add_typer(group, name="config")


def show(context: typer.Context) -> None:
    """Every setting, its value and where it comes from."""
    session: Session = context.obj
    from datamill.settings import flat_names, resolve

    resolved = resolve(session.project)
    found = {}
    for name in flat_names():
        value: object = resolved.settings
        for part in name.split("."):
            value = getattr(value, part)
        found[name] = {"value": value, "origin": resolved.origins[name]}
    lines = [f"{name:<32} {item['value']!s:<28} {item['origin']}" for name, item in found.items()]
    session.result(found, "\n".join(lines))


def set_value(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="dotted name, such as run.workers")],
    value: Annotated[str, typer.Argument(help="new value")],
) -> None:
    """Write a setting into datamill.toml of this project."""
    session: Session = context.obj
    import tomllib

    from datamill.cli.values import parse_set
    from datamill.errors import nearest
    from datamill.services.storage.atomic import write_bytes
    from datamill.settings import flat_names, resolve

    if name not in flat_names():
        close = nearest(name, flat_names())
        hint = f"; did you mean `{close}`?" if close else ""
        raise usage_error(f"there is no setting `{name}`{hint}", "datamill config show")
    file = session.project / "datamill.toml"
    before = file.read_text(encoding="utf-8") if file.is_file() else None
    data = tomllib.loads(before) if before is not None else {}
    node = data
    *parents, leaf = name.split(".")
    for parent in parents:
        node = node.setdefault(parent, {})
    node[leaf] = parse_set([f"x={value}"])["x"]
    write_bytes(file, _toml(data).encode(), "settings")
    try:
        resolve(session.project)
    except Exception:
        # an invalid value must not stay behind: put the file back as it was
        write_bytes(file, before.encode(), "settings") if before is not None else file.unlink()
        raise
    session.result({name: value}, f"{name} = {value} ({file.name})")


def _toml(data: dict[str, object]) -> str:
    lines = [f"{key} = {_toml_value(value)}" for key, value in data.items() if not isinstance(value, dict)]
    for key, value in data.items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]", *(f"{k} = {_toml_value(v)}" for k, v in value.items())]
    return "\n".join(lines).strip() + "\n"


def _toml_value(value: object) -> str:
    import json

    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def path(context: typer.Context) -> None:
    """Files settings are read from, strongest first."""
    session: Session = context.obj
    from datamill.settings import config_home

    files = [session.project / "datamill.toml", config_home() / "config.toml"]
    text = "\n".join(f"{file}{'' if file.is_file() else '  (absent)'}" for file in files)
    session.result([str(file) for file in files], text)
