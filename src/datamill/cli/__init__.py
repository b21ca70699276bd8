"""The command line. Importing this package loads no command; `main` does."""


def main() -> None:
    """Entry point of the `datamill` script."""
    import sys

    from datamill.cli.app import invoke

    sys.exit(invoke(sys.argv[1:]))
