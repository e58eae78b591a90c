"""``python -m gibbsian`` is the command line."""

from gibbsian.cli.main import run

if __name__ == "__main__":
    run()
