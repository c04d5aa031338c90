#!/bin/sh
# All measurements on a GPU in at most 150 seconds: JSON for each part in the folder OUT.
# Usage, from the root of the repository: benchmarks/gpu.sh OUT [--only TEXT] [--tiny]
out=${1:?name a folder for the results}
shift
exec python -m benchmarks.on_gpu "$out" "$@"
