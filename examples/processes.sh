# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Sourced by the scripts that stop and kill ranks of a run. $work is a folder of the run, which the
# environment of its processes names: SILENT_RUN=$work COMMAND.

# processes: the processes of this run, each with its rank, or "launcher".
processes() {
  local file
  for file in $(grep -lzs "^SILENT_RUN=$work\$" /proc/[0-9]*/environ); do
    [[ $(ps -o stat= -p "$(basename "$(dirname "$file")")") != Z* ]] || continue
    echo "$(basename "$(dirname "$file")") $(tr '\0' '\n' 2> /dev/null < "$file" | sed -n 's/^\(OMPI_COMM_WORLD_RANK\|PMI_RANK\)=//p' | head -1)"
  done 2> /dev/null | awk '{ print $1, ($2 == "" ? "launcher" : $2) }'
}
started() { pid=$(processes | awk -v rank="$victim" '$2 == rank { print $1 }') && [[ -n $pid ]]; }
ranks_gone() { ! processes | grep -qv launcher; }
# kill_all: ends the processes of this run.
kill_all() { processes | while read -r process _; do kill -KILL "$process" 2> /dev/null || true; done; }
