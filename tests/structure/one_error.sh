#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# one_error.sh SENTENCE COMMAND...: passes if the compiler COMMAND fails with one #error, the sentence,
# and with no other error but the missing file that ends the compilation.
set -uo pipefail
sentence=$1
shift
if output=$("$@" 2>&1); then
  echo "the command succeeded, and must not: $*"
  exit 1
fi
if [[ $(grep 'error: ' <<< "$output" | grep -v 'fatal error: ') != *"error: "*"$sentence"* ]] ||
   (($(grep -c 'error: ' <<< "$output") > 2)); then
  printf 'the command failed, but did not just say: %s\n%s\n' "$sentence" "$(head -20 <<< "$output")"
  exit 1
fi
