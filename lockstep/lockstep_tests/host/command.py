"""The command ``lockstep``, for tests that run it in a process of its own."""

from lockstep.cli import main

if __name__ == "__main__":
    main()
