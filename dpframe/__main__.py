"""``python -m dpframe``: the command line."""

from dpframe.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
