"""Deprecated: `python -m radialbeams.reproduce` does the same."""

import sys

from radialbeams.reproduce.__main__ import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
