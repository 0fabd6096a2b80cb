"""`python -m roost` is the command `roost`."""

from roost.cli.main import main

if __name__ == "__main__":
    main()
