"""`python -m datamill`: the command line."""

from datamill.cli import main

if __name__ == "__main__":
    main()
