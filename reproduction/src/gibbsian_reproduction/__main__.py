"""``python -m gibbsian_reproduction`` is the command ``gibbsian-reproduce``."""

from gibbsian_reproduction.cli import run

if __name__ == "__main__":
    run()
