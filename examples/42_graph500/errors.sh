#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# errors.sh COMMAND...: starts COMMAND, graph500 on 2 ranks, with what it must reject. Each time it has to
# end soon, with a status other than 0, and say what is wrong.
. "$(dirname "${BASH_SOURCE[0]}")/../common/refuses.sh"
always=()
# file LINES...: writes a file of edges
file() { printf '%s\n' "$@" > "$folder/edges.txt"; }
refuses "there is no such graph (--scale 0, --edgefactor 16)" --scale 0
file "0 0"
refuses "there are more ranks than vertices (2 ranks, and the graph has 1 vertices)" --edges "$folder/edges.txt"
refuses "--policy has no 'node'; choose one of nodes, edges, decomposition" --policy node
refuses "--direction has no 'up'" --direction up
refuses "there is nothing to search (--roots 0" --roots 0
refuses "--root 1024 is no vertex (the graph has 1024 vertices)" --root 1024
refuses "cannot read '$folder/none.txt'" --edges "$folder/none.txt"
file "0 1" "# two" "" "1 two"
refuses "$folder/edges.txt:4: not an edge ('1 two')" --edges "$folder/edges.txt"
file "0 -1"
refuses "$folder/edges.txt:1: not an edge ('0 -1')" --edges "$folder/edges.txt"
file "0 1 0"
refuses "$folder/edges.txt:1: not an edge ('0 1 0')" --edges "$folder/edges.txt"
file "# none"
refuses "the file has no edge" --edges "$folder/edges.txt"
file "0 0" "2 2"
refuses "no vertex can be a root (the edges of all 3 vertices are loops)" --edges "$folder/edges.txt"
file "0 1" "2 2"
refuses "--root 2 has no edges" --edges "$folder/edges.txt" --root 2
file "0 1 2147483647" "1 2"
refuses "a distance may have more than 31 bits" --edges "$folder/edges.txt"
refuses "the graph has no place for this fault" --scale 2 --edgefactor 64 --plant
exit $((failures > 0))
