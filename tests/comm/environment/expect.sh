#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# expect.sh success|failure SENTENCE COMMAND...: the command ends so, and has printed the sentence.
set -uo pipefail
outcome=$1
sentence=$2
shift 2
printed=$("$@" 2>&1)
status=$?
printf '%s\n' "$printed"
ended=failure
((status == 0)) && ended=success
if [[ $ended != "$outcome" ]]; then
  echo "expected $outcome, the exit status is $status"
  exit 1
fi
if [[ $printed != *"$sentence"* ]]; then
  echo "expected the sentence: $sentence"
  exit 1
fi
