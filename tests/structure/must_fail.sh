#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# must_fail.sh SENTENCE COMMAND...: passes where the command fails and prints the sentence.
set -uo pipefail
sentence=$1
shift
if output=$("$@" 2>&1); then
  echo "the command succeeded, and must not: $*"
  exit 1
fi
if [[ $output != *"$sentence"* ]]; then
  printf 'the command failed, but did not say: %s\n%s\n' "$sentence" "$output"
  exit 1
fi
echo "failed and said: $sentence"
