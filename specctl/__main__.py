"""`python -m specctl`."""

from specctl.cli.main import main

if __name__ == "__main__":
    main()
