#!/bin/sh
# What needs a GPU, one after the other; JSON goes to the folder that is named.
# Usage: benchmarks/gpu.sh OUT [DATA], from the root of the repository.
set -e
out=${1:?name a folder for the results}
mkdir -p "$out"
python -m benchmarks sampling --out "$out/history" --json > "$out/sampling.json"
python benchmarks/overhead.py --json > "$out/overhead.json" || echo "overhead: a bar is missed" >&2
python benchmarks/training_speed.py ${2:+--data "$2"} > "$out/training.json" || echo "training: a bar is missed" >&2
