#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh PROGRAM DOCS: the command line of mpigen, strip then insert as the identity on emitted
# programs and on the sources of the repository, and scores that were computed by hand.
set -uo pipefail
program=$1
root=$(dirname "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0
fail() { failures=$((failures + 1)); echo "FAILED: $*"; }

# expect STATUS PHRASE ARGUMENTS...
expect() {
  local status=$1 phrase=$2 ended=0
  shift 2
  "$program" "$@" > out 2>&1 || ended=$?
  [[ $ended -eq $status ]] || fail "$* ends with $ended"
  grep -qF -- "$phrase" out || fail "$* says: $(head -3 out)"
}

# --- Emitting.
expect 2 "a command is missing; there are emit, strip, insert, score"
expect 2 "no command 'stirp'; did you mean 'strip'?" stirp
expect 2 "no schedule 'zbv'; did you mean 'zb-v'?" emit zbv -
expect 2 "no collective 'all_redcue'; did you mean 'all_reduce'?" emit all_redcue:ring -
expect 2 "no algorithm 'rnig'; did you mean 'ring'?" emit all_reduce:rnig -
expect 2 "no type 'f23'; did you mean" emit gpipe - --type f23
expect 2 "--group means nothing to this schedule" emit gpipe - --group 2
expect 2 "--bytes is for collectives" emit gpipe - --bytes 8
expect 2 "--lines means nothing to a collective" emit all_reduce:ring - --lines 2
expect 2 "FILE is required" emit gpipe
expect 1 "the name of the namespace is not an identifier ('a b')" emit gpipe - --namespace "a b"
expect 1 "a pipeline needs at least one stage" emit gpipe - --ranks 0
expect 1 "cannot write 'nowhere/a.hpp'" emit gpipe nowhere/a.hpp
expect 0 "// 1F1B P=2 M=3 on 2 ranks, in C++17 with MPI alone." emit 1f1b - --ranks 2 --microbatches 3
expect 0 "namespace mine {" emit 1f1b - --namespace mine
expect 0 "class Program {" emit all_reduce:ring - --ranks 3 --bytes 24

# --- strip then insert is the identity, and leaves no call.
calls=0
identity() {
  "$program" strip "$1" stripped list && "$program" insert stripped list back || fail "$1: strip or insert"
  cmp -s "$1" back || fail "$1 comes back as another one"
  "$program" strip stripped again rest
  [[ ! -s rest ]] && cmp -s stripped again || fail "$1 keeps calls"
  calls=$((calls + $(wc -l < list)))
}
"$program" emit nothing - 2>&1 | tr '\n' ' ' | sed 's/.*there are //; s/, and COLLECTIVE.*//; s/, /\n/g' > names
emitted=0
while read -r name; do
  for ranks in 2 4; do
    "$program" emit "$name" program.hpp --ranks $ranks --microbatches $((2 * ranks)) --activation 64 \
      --parameters 64 2> errors || continue
    emitted=$((emitted + 1))
    identity program.hpp
  done
done < names
((emitted >= 40)) || fail "only $emitted pipelines were emitted"
for collective in all_reduce reduce_scatter all_gather all_to_all broadcast reduce gather scatter \
                  barrier inclusive_scan exclusive_scan; do
  for algorithm in ring bidirectional_ring recursive_doubling recursive_halving binomial_tree \
                   double_tree star direct bruck; do
    bytes=64
    [[ $collective == barrier ]] && bytes=0
    "$program" emit $collective:$algorithm program.hpp --bytes $bytes 2> errors || continue
    emitted=$((emitted + 1))
    identity program.hpp
  done
done
((emitted >= 70)) || fail "only $emitted programs were emitted"
while read -r source; do identity "$source"; done < <(
  grep -rlE 'MPI_[A-Z][a-z]' "$root"/{examples,benchmarks,tests/comm,include/heddle/comm} | sort)
((calls > 2000)) || fail "only $calls calls were moved"

# Calls within lines, over several lines, in comments, strings, directives and raw strings; line feeds
# of another system; no line feed at the end.
printf '%s\n' '#include <mpi.h>' '#define SUM(x) MPI_Allreduce(x, \' '  x, 1)' '// MPI_Send(a);' \
  'int MPI_Isend(const void* data) { return PMPI_Isend(data); }' \
  'const char* s = "MPI_Recv(b)";  /* MPI_Wait(c); */' 'auto r = R"x(MPI_Test(")x";' \
  '  MPI_Send(a, 1,' '           f(")", '"')'"'),  // MPI_Bcast(' '           MPI_COMM_WORLD);  // to it' \
  'if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return MPI_Abort(MPI_COMM_WORLD, 1'"'"'000);' \
  'double t = MPI_Wtime() - MPI_Wtime(); MPI_Barrier(comm);' 'MPI_Comm(comm); f(MPI_Finalize);' > odd.cpp
printf '\tMPI_Barrier(comm);\r\n  MPI_Finalize();\r\n}\r\nMPI_Finalize();' >> odd.cpp
identity odd.cpp
cat > odd.list <<'END'
8,   MPI_Send(a, 1,\n           f(")", ')'),  // MPI_Bcast(\n           MPI_COMM_WORLD);  // to it
11:5, MPI_Init(&argc, &argv)
11:51, MPI_Abort(MPI_COMM_WORLD, 1'000)
12:12, MPI_Wtime()
12:26, MPI_Wtime()
12:39, MPI_Barrier(comm)
14, 	MPI_Barrier(comm);
15,   MPI_Finalize();
17:1, MPI_Finalize()
END
"$program" strip odd.cpp - odd.found > odd.stripped
diff <(tr -d '\r' < odd.found) odd.list || fail "other calls are found"
printf 'x\n' > short
printf '5, MPI_Init(0);\n' > far
expect 1 "a call stands beyond the source (line 5, column 1: MPI_Init)" insert short far -
printf '1:9, MPI_Init(0)\n' > wide
expect 1 "a call stands within another one, or beyond its line" insert short wide -
for line in '0, MPI_Init(0);' '1 MPI_Init(0);' '1:0, MPI_Init(0)' '1, f(0);' 'MPI_Init(0);' '1, MPI_Init(\q);'; do
  printf '%s\n' '3, MPI_Finalize();' "$line" > wrong
  expect 1 "wrong: a line is not 'LINE, CALL' or 'LINE:COLUMN, CALL' (line 2: '$line')" score wrong wrong
done
expect 1 "cannot read 'none'" strip none - found

# --- Scores, by hand: F1 is twice the pairs over the calls of both lists.
cat > truth <<'END'
3, MPI_Init(&argc, &argv);
5, MPI_Comm_rank(MPI_COMM_WORLD, &rank);
6, MPI_Comm_size(MPI_COMM_WORLD, &size);
10, MPI_Send(a, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
12, MPI_Recv(a, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
20, MPI_Finalize();
END
# scored ROW: TOLERANCE LOCATION FUNCTION ARGUMENTS LOCATED NAMED EQUAL, of `predicted` from the input
scored() {
  "$program" score truth predicted | tr -s ' ' | sed 's/ $//' > out
  grep -qxF "$1" out || fail "not '$1' but: $(grep "^${1%% *} " out)"
}
cp truth predicted
scored "0 1.0000 1.0000 1.0000 6 6 19/19"
awk -F, -v OFS=, '{ $1 += 1; print }' truth > predicted  # 6 meets 6, where another function stands
scored "0 0.1667 0.0000 - 1 0 0/0"
scored "1 1.0000 1.0000 1.0000 6 6 19/19"
cat > predicted <<'END'
3, MPI_Init(&argc, &argv);
5, MPI_Comm_rank(MPI_COMM_WORLD, &rank);
6, MPI_Comm_size(MPI_COMM_WORLD, &size);
10, MPI_Send(a, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
12, MPI_Irecv(a, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
15, MPI_Barrier(MPI_COMM_WORLD);
END
scored "0 0.8333 0.6667 0.9167 5 4 11/12"  # 10/12, 8/12, 11/12
scored "2 0.8333 0.6667 0.9167 5 4 11/12"
: > predicted
scored "0 0.0000 0.0000 - 0 0 0/0"
echo '12, MPI_Send(b, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);' > predicted
scored "0 0.2857 0.0000 - 1 0 0/0"  # 2/7; the send is two lines away
scored "1 0.2857 0.0000 - 1 0 0/0"
scored "2 0.2857 0.2857 0.8333 1 1 5/6"
for _ in 1 2; do echo '10, MPI_Send(a, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);'; done > predicted
scored "0 0.2500 0.2500 1.0000 1 1 6/6"  # 2/8: a call is in one pair
scored "2 0.5000 0.2500 1.0000 2 1 6/6"  # 4/8
cat > predicted <<'END'
3, MPI_Init(NULL, NULL);
5:9, MPI_Comm_rank( MPI_COMM_WORLD , & rank /* mine */ )
6, MPI_Comm_size(MPI_COMM_WORLD);
20, MPI_Finalize();
END
scored "0 0.8000 0.8000 0.5000 4 4 3/6"  # 8/10, 8/10, (0 + 2 + 1 + 0) / (2 + 2 + 2 + 0)
# Three at 1, 2, 3 against two at 3, 4: none may be left over that a pair could have.
for line in 1 2 3; do echo "$line, MPI_Barrier(c);"; done > truth
for line in 3 4; do echo "$line, MPI_Barrier(c);"; done > predicted
scored "0 0.4000 0.4000 1.0000 1 1 1/1"  # 2/5
scored "1 0.8000 0.8000 1.0000 2 2 2/2"  # 4/5: 2 with 3, 3 with 4
scored "2 0.8000 0.8000 1.0000 2 2 2/2"
printf '2, MPI_Send(f(a, b), {1, 2}, x[i, j], "a, b");\n' > truth
printf '4, MPI_Send(f(a, b), {1, 2}, x[i, k], "a,b");\n' > predicted
scored "1 0.0000 0.0000 - 0 0 0/0"
scored "2 1.0000 1.0000 0.5000 1 1 2/4"  # the strings differ, too
printf '2, MPI_Comm_free(&c);\n2, MPI_Comm_free(&d);\n' > truth
printf '2, MPI_Comm_free(&d);\n2, MPI_Comm_free(&c);\n' > predicted
scored "0 1.0000 1.0000 0.0000 2 2 0/2"  # in the order of the lines
: > truth
: > predicted
expect 1 "mpigen score: both lists are empty (there is nothing to compare)" score truth predicted
printf '\xEF\xBB\xBF' > truth  # what an editor may write of an empty list
expect 1 "mpigen score: both lists are empty" score truth predicted
echo '1, MPI_Finalize();' > predicted
scored "0 0.0000 0.0000 - 0 0 0/0"
printf '\xEF\xBB\xBF1, MPI_Finalize();\n' > truth
scored "0 1.0000 1.0000 - 1 1 0/0"
printf '1, \e[31mred\xff\n' > wrong
expect 1 "(line 1: '1, \\x1b[31mred\\xff')" score wrong wrong
expect 2 "PREDICTED is required" score truth

((failures == 0)) && echo "$emitted programs and $calls calls, all as expected"
exit $((failures > 0))
