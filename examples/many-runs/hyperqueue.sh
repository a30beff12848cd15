#!/bin/bash
# hq submit --array 1-8 --cpus 4 --crash-limit 3 ./hyperqueue.sh
# raddle status out/incast
exec raddle sweep load.toml --set traffic.sources=4,8,12 --out out/incast --quiet --jobs 4 --shard "$HQ_TASK_ID/8"
