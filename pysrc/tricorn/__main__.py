"""`python -m tricorn` is the `tricorn` command."""

from tricorn.cli import main

if __name__ == "__main__":
    main(prog_name="python -m tricorn")
