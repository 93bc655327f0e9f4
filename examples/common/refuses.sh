# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Sourced by the errors.sh of examples, with their arguments: "$@" is a command that starts the example
# over ranks. Provides $folder, which goes with the script, $failures and refuses(). The array `always`
# holds options of every call.
set -uo pipefail
command=("$@")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
# Open MPI waits a second between its first and its last word to the ranks that an error leaves behind.
export OMPI_MCA_odls_base_sigkill_timeout=0

# refuses PHRASE ARGUMENTS...: the example ends soon, with a status other than 0, and prints PHRASE
refuses() {
  local phrase=$1 output status=0
  shift
  output=$(timeout 60 "${command[@]}" "${always[@]}" "$@" 2>&1) || status=$?
  if ((status == 0 || status == 124)) || [[ $output != *"$phrase"* ]]; then
    failures=$((failures + 1))
    printf 'FAILED (status %s): %s\n  expected: %s\n  printed:  %s\n' \
           "$status" "$*" "$phrase" "$output"
  else
    printf 'ok: %s: %s\n' "$*" "$phrase"
  fi
}
