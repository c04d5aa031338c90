"""The reliability probe: hostile inputs, kills and limits against the command line, with counts.

    python -m tests.probe --files 2000 --kills 300 --journals 500 --models 50 --json probe.json

Each family of cases is one file. A case is fixed by the seed and its number, so that one that fails
can be repeated alone: `--only kills --first 17 --cases 1 --seed 0`.
"""
