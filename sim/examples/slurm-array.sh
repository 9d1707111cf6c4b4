#!/bin/sh
# Runs one experiment as 16 shards of a Slurm job array; each task does every 16th run.
#   sbatch slurm-array.sh
# When all tasks have ended, join the shards:
#   headgate sim merge results/load-90 --out merged
#SBATCH --job-name=headgate-sim
#SBATCH --array=0-15
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
exec headgate sim run load-90 --seeds 64 --jobs 1 --shard "$SLURM_ARRAY_TASK_ID/16" --out results
