#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# errors.sh COMMAND...: starts COMMAND, nbody on 2 ranks, with what it must reject. Each time it has to
# end soon, with a status other than 0, and say what is wrong.
. "$(dirname "${BASH_SOURCE[0]}")/../common/refuses.sh"
always=()
# file LINES...: writes a file of particles
file() { printf '%s\n' "$@" > "$folder/particles.txt"; }
refuses "there are more ranks than particles (2 ranks, and 1 particles)" --particles 1
refuses "there are no such particles (--particles 0)" --particles 0
refuses "--start has no 'wave'; choose one of waves, zeldovich, random, clusters" --start wave
refuses "there is nothing to simulate" --steps 0
refuses "near forces must end before half the box" --mesh 15
refuses "the mesh has too many cells for numbers of 31 bits (--mesh 1291); give at most --mesh 1290" --mesh 1291
refuses "these settings make no sense" --theta 1
refuses "cannot read '$folder/none.txt'" --read "$folder/none.txt"
file "0.5 0.5 0.5" "# two" "0.1 nan 0.2"
refuses "$folder/particles.txt:3: not a particle ('0.1 nan 0.2')" --read "$folder/particles.txt"
file "0.5 0.5 1"
refuses "$folder/particles.txt:1: not a particle ('0.5 0.5 1')" --read "$folder/particles.txt"
file "0.5 0.5 0.5 1"
refuses "$folder/particles.txt:1: not a particle" --read "$folder/particles.txt"
file "0.5 0.5 0.5" "0.2 0.2 0.2 1e308 0 0"
refuses "the position of particle 1 is no point of the box" --read "$folder/particles.txt" --dt 10 --steps 1
start=(--particles 3 --steps 2 --mesh 16)
"${command[@]}" "${start[@]}" --stop 1 --save "$folder/state" > "$folder/output" || { cat "$folder/output"; exit 1; }
refuses "$folder/state: the file belongs to another run (expected --seed 2, got 1)" "${start[@]}" --seed 2 \
  --resume "$folder/state"
refuses "$folder/state: the file belongs to another run (expected --start random, got waves)" "${start[@]}" \
  --start random --resume "$folder/state"
refuses "$folder/state: the file belongs to another run (expected --clusters 2, got 5)" "${start[@]}" \
  --clusters 2 --resume "$folder/state"
seq -f "0.%02g 0.5 0.5" 27 > "$folder/particles.txt"
refuses "$folder/state: the file belongs to another run (expected --start the file of --read, got waves)" \
  "${start[@]}" --read "$folder/particles.txt" --resume "$folder/state"
refuses "cannot write '$folder/none/frame_00000.png'" "${start[@]}" --pictures "$folder/none"
refuses "cannot write '$folder/none/state'" "${start[@]}" --pictures "$folder" --save "$folder/none/state"
truncate -s -1 "$folder/state"
refuses "$folder/state" "${start[@]}" --resume "$folder/state"
exit $((failures > 0))
