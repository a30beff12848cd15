#!/bin/sh
# One rank of mpi4py's tests: mpi4py_rank.sh FOLDER PYTHON WORD...; what it says is in FOLDER/rank-N.
# Files of parallel input and output are in FOLDER too: hosts of a lab have temporary files of their own.
folder=$1
shift
export TMPDIR="$folder"
# Which tests failed is in the text; a status would make mpirun end the other ranks.
"$@" >"$folder/rank-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" 2>&1 || true
