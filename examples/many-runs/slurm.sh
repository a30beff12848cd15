#!/bin/bash
# sbatch slurm.sh                               eight tasks, wherever there is room; the last one joins
# raddle status out/incast                      what is done, who is at what, what waits
# sbatch --dependency=afterany:JOB slurm.sh     a second array goes on with what the first one left
#SBATCH --job-name=incast
#SBATCH --array=1-8
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00
#SBATCH --requeue
# A minute before its time is up a task ends its runs and gives them back.
#SBATCH --signal=B:TERM@60
exec raddle sweep load.toml --set traffic.sources=4,8,12 --out out/incast --quiet \
    --jobs "$SLURM_CPUS_PER_TASK" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
