"""`python -m radialbeams`: the same as the command."""

from radialbeams.cli import run

if __name__ == "__main__":
    run()
