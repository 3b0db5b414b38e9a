#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A comparison as a Slurm array: each task does one part of the runs, a last job makes the results of all parts.
#   GRID=grid.yaml OUT=results sbatch slurm.sh      OUT lies on a file system that all nodes see
#   sbatch --dependency=afterok:JOB_ID --array=0 --export=ALL,MERGE=1 slurm.sh
# A task that was ended early goes on where it was when it is submitted again.
#SBATCH --job-name=horus-compare
#SBATCH --array=0-7
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=02:00:00
set -euo pipefail

grid=${GRID:-grid.yaml}
out=${OUT:-results}
if [ -n "${MERGE:-}" ]; then
  exec horus compare "$grid" --out "$out" --merge
fi
exec horus compare "$grid" --out "$out" --threads "${SLURM_CPUS_PER_TASK:-1}" \
  --shard "$((SLURM_ARRAY_TASK_ID - ${SLURM_ARRAY_TASK_MIN:-0}))/${SLURM_ARRAY_TASK_COUNT:-1}"
