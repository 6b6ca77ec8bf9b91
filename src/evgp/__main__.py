"""`python -m evgp` is the command `evgp`."""

from evgp.cli.main import main

if __name__ == "__main__":
    main()
