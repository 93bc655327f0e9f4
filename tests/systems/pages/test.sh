#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh ROOT BUILD PAGE: runs the commands of docs/systems/PAGE.md, "Run it on your own data", as they are
# printed, but for three steps of a training at most. What the reader brings is written here: a text, prompts,
# profiles, a program. Status 1 where a command fails, or the page prints none.
set -euo pipefail
root=$1 build=$2 page=$3
commands=$(awk '/^## / { here = /^## Run it on your own data/ } here && /^```sh/ { shell = 1; next }
                /^```/ { shell = 0 } here && shell' "$root/docs/systems/$page.md")
[[ -n $commands ]] || { echo "docs/systems/$page.md prints no command"; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir build
ln -s "$build" build/openmp
ln -s "$root/scripts" scripts
. scripts/environment.sh

cat "$root/README.md" "$root/docs/design.md" > FILE
printf '%s\n' "A schedule is" "The ranks wait for" > prompts.txt
ln -s build/openmp/examples/example_20_heat3d program
cp "$root/examples/consume_emitted/main.cpp" program.cpp
for run in {1..40}; do echo "$((1 + run * run % 17)).$run"; done > runs.txt
# A network in the form of PipeDream's profiler: times of a minibatch of 32 samples in milliseconds.
layer() { printf 'node%d -- %s -- forward_compute_time=%s, backward_compute_time=%s, activation_size=%s, parameter_size=%s\n' "$@"; }
{ layer 1 Input 0.0 0.0 19267584.0 0.0
  for i in 2 3 4 5 6; do layer $i "Conv2d(64, 64)" $((2 * i)).5 $((4 * i)).5 $((800000 * (8 - i))).0 $((150000 * i)).0; done
  layer 7 "Linear(4096, 1000)" 1.0 2.0 128000.0 16388000.0
  for i in {1..6}; do printf '\tnode%d -- node%d\n' $i $((i + 1)); done; } > vgg.txt
# What another page of the same kind makes first.
trained() { mpiexec -n 2 build/openmp/examples/example_10_train_gpt --pipe 2 --text FILE --steps 3 --save model.ckpt > /dev/null; }
case $page in
  tpi_llm_window) trained ;;
  mpirigen) echo "1, MPI_Init(&argc, &argv);" > predicted.txt ;;
esac
if [[ $page == photons && ! -x build/openmp/examples/example_40_nbody ]]; then
  echo "skipped: example 40 is not built, because FFTW was not found"
  exit 77
fi

status=0
commands=$(sed -E 's/--(local-)?steps [0-9]+/--\1steps 3/g; s/\bevents\.12345\b/$(ls events.* | head -1)/' <<< "$commands")
echo "$commands"
# "On as many ranks as the plan has": what was measured beside other tests may make fewer of them faster.
mpiexec() {
  if [[ $* == *"--plan plan.json"* ]]; then
    set -- -n $(($(tr '\n' ' ' < plan.json | grep -oE '"ranks": *\[[^]]*' | grep -oE '[0-9]+' | sort -n | tail -1) + 1)) "${@:3}"
  fi
  command mpiexec "$@"
}
export -f mpiexec
bash -euo pipefail -c "$commands" < /dev/null > output 2>&1 || status=$?
cat output
((status == 0)) || { echo "docs/systems/$page.md: a command ends with status $status"; exit 1; }
