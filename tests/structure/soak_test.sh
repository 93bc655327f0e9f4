#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# soak_test.sh SOURCE BUILD: scripts/soak selects the tests of its promises in a build folder, and no
# test without a long form.
set -euo pipefail
source=$1 build=$2
all=$(ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: //p')
listed=$("$source/scripts/soak" --list "$build")
status=0
count=0
for name in schedule.torch_csv_fuzz json.wrong_files layout.cut memory.pool memory.fork \
            tensor.redistribute.n4 comm.strided_datatype.n1 comm.shared_transport.n2 comm.failure.program.stop.n4 \
            example.10_train_gpt.elastic; do
  grep -qx "$name" <<< "$all" || continue  # the build does not have this test
  count=$((count + 1))
  grep -qx "$name" <<< "$listed" || { echo "scripts/soak does not run $name"; status=1; }
done
((count > 0)) || { echo "$build has none of the tests"; status=1; }
if grep -x core.text <<< "$listed"; then echo "scripts/soak runs a test without a long form"; status=1; fi
exit $status
