#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# local_steps.sh COMMAND...: starts COMMAND, train_gpt on 4 ranks, with replicas that take local steps.
# Each time --check compares losses and parameters with those of one rank that plays all replicas.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/trains.sh"
sizes=(--microbatches 4 --layers 4 --width 16 --heads 2 --context 16)
command=("$@")
local_steps() { trains "$@" --steps 9 --local-steps 3; }
local_steps "2 replicas of pipe=2 x ring=1 x heads=1 x tensor=1" --pipe 2 --data 2
local_steps "ZB-H1 P=2 M=4" --pipe 2 --data 2 --schedule zb-h1
local_steps "Chimera P=2 M=4" --pipe 2 --data 2 --schedule chimera
local_steps "2 replicas of pipe=1 x ring=1 x heads=1 x tensor=2" --tensor 2 --data 2
local_steps "2 replicas of pipe=1 x ring=2 x heads=1 x tensor=1" --sequence 2 --data 2
local_steps "4 replicas of pipe=1 x ring=1 x heads=1 x tensor=1" --data 4 --outer-momentum 0.9 --no-gap-penalty
# 7 sequences in 3 microbatches: 3, 2 and 2.
local_steps "1F1B P=2 M=3" --pipe 2 --data 2 --batch 7 --microbatches 3
exit $((failures > 0))
