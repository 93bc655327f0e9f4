#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# gpu_test.sh SOURCE: `scripts/gpu run` on a miniature kit, whose programs and device are scripts: which steps a
# dry run has, that each verdict is told, that no step takes longer than what is left, and what --save writes.
# The kit of scripts/gpu pack, where there is one, is run dry, too.
set -uo pipefail
source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
complain() { echo "gpu_test: $*"; status=1; }

# What `run` reads of the repository, and a kit.
mkdir -p "$folder"/root/{scripts,cmake,docs,.gpu} "$folder"/kit/{bin,lib,mpi/usr/bin,reference/patterns,reference/training}
cp "$source/scripts/gpu" "$folder/root/scripts/"
cp "$source/cmake/compare_results.sh" "$folder/root/cmake/"
cp "$source/docs/gpu.md" "$folder/root/docs/"
program() { cat > "$folder/kit/$1"; sed -i '1i #!/usr/bin/env bash' "$folder/kit/$1"; chmod +x "$folder/kit/$1"; }
pack() { tar -C "$folder/kit" -cJf "$folder/root/.gpu/kit.tar.xz" .; }
run() { bash "$folder/root/scripts/gpu" "$@" > "$folder/said" 2>&1; }
line() { grep -qE "^gpu $1, [0-9]+ s\$" "$folder/out/results.txt" || complain "no line: gpu $1"; }

printf 'heddle results 1\nintegers\n1\n2\n' | tee "$folder/kit/reference/patterns/a.txt" > "$folder/kit/reference/training/a.txt"
echo "Heddle of a test" > "$folder/kit/made_of.txt"
printf 'kernel.map\nkernel.reduce\nkernel.pack\nkernel.stencil\ndevice.mirror\nmemory.views\n' > "$folder/kit/subjects"
program mpi/usr/bin/orterun <<< 'shift 2; exec "$@"'
program mpi/usr/bin/nvidia-smi <<< 'echo "Loom 9, 1.2.3, 4 MiB"'
program mpi/usr/bin/ldd <<< 'echo "  libcuda.so.1 => not found"; echo "  libc.so.6 => /lib/libc.so.6 (0x1)"'
program mpi/usr/bin/python3 <<< 'echo "value device/peers copy 3 2..4 GB/s"'
program mpi/usr/bin/compute-sanitizer <<< 'exit 127'
program bin/backends_ranks <<< 'echo "2 ranks"'
program bin/backends_patterns <<< 'mkdir -p "$HEDDLE_RESULTS"; printf "heddle results 1\nintegers\n1\n2\n" > "$HEDDLE_RESULTS/a.txt"'
program bin/backends_training <<< 'mkdir -p "$HEDDLE_RESULTS"; printf "heddle results 1\nintegers\n1\n3\n" > "$HEDDLE_RESULTS/a.txt"'
program bin/bench_device_gpu <<< 'echo "ratio device/gpu map 1 1..1"'
program bin/kernel_tests <<< 'case ${*: -1} in "[#reduce]") exit 4 ;; "[#pack]") exit 3 ;; esac'
for name in collective_device_memory_test kernel_generation_test kernel_outlived_test bench_kernel_training_step \
            bench_pipeline_gpt_1f1b; do program bin/$name <<< 'true'; done
program bin/example_20_heat3d <<< 'echo "hottest after 40 steps: 54"'
program bin/example_10_train_gpt <<< 'exit 1'
pack

# A dry run starts no program that needs the device, and is not saved.
run run "$folder/out" 60 --dry || { complain "a dry run fails"; cat "$folder/said" "$folder/out/log.txt"; }
for name in unpack libraries ranks reference peers; do line "$name: passed"; done
line 'patterns: skipped \(dry\)'
line 'kernel.map: skipped \(dry\)'
cmp -s "$source/docs/gpu.md" "$folder/root/docs/gpu.md" || complain "a dry run writes docs/gpu.md"
run run "$folder/out" 60 --dry --save && complain "a dry run is saved"
run save "$folder/out" && complain "the results of a dry run are saved"
rows=$(sed -n '/^<!-- gpu: begin/,/^<!-- gpu: end/s/^| \([a-z0-9_]*\) |.*/\1/p' "$source/docs/gpu.md" | grep -v '^step$')
steps=$(sed -n 's/^gpu \([a-z0-9_]*\).*:.*/\1/p' "$folder/out/results.txt" | awk '!seen[$0]++')
[[ $rows == "$steps" ]] || complain "docs/gpu.md has the rows" $rows ", and a run has the steps" $steps

# A run with failed and skipped steps.
run run "$folder/out" 600 --save && complain "a run with failed steps returns 0"
line 'libraries: failed \(1\)'  # libcuda.so.1 is not found, and this run is not dry
line 'patterns: passed'
line 'training: failed \(1\)'
line 'kernel.reduce: skipped \(all its cases\)'
line 'kernel.pack: failed \(3\)'
line 'sanitizer: skipped \(not there\)'
line 'two_ranks: passed'
line 'example20: passed'
line 'example10: failed \(1\)'
line 'memory.views: passed'
grep -qx 'ratio device/gpu map 1 1..1' "$folder/out/bench.txt" || complain "bench.txt lacks the benchmark's line"
page() { grep -qE "$1" "$folder/root/docs/gpu.md" || complain "docs/gpu.md does not say: $1"; }
page "^Last run: [0-9-]{10}, Loom 9, 1\.2\.3, 4 MiB; Heddle of a test\.\$"
page '^\| training \| .* \| failed \(1\), [0-9]+ s \|$'
page '^\| kernel \| .* \| 2 passed; 1 skipped \(all its cases\): reduce; 1 failed \(3\): pack, [0-9]+ s \|$'
page '^\| example10 \| .* \| failed \(1\), [0-9]+ s \|$'
((status == 0)) || cat "$folder/out/results.txt" "$folder/out/log.txt"

# A run whose time is over: a step is cut to what is left, and those after it only say so.
program bin/backends_patterns <<< 'sleep 1000'
pack
SECONDS=0
run run "$folder/out" 5 && complain "a run that is cut off returns 0"
((SECONDS < 500)) || complain "a run of 5 s takes $SECONDS s"
awk '/: skipped \(no time left\), 0 s$/ { over = 1; next } over { bad = 1 } /: timed out, / { over = 1 } END { exit bad || !over }' \
  "$folder/out/results.txt" || { complain "a step runs when no time is left"; cat "$folder/out/results.txt"; }

# What must stop it.
program mpi/usr/bin/ldd <<< 'echo "  libmissing.so => /usr/lib/libmissing.so (0x1)"'
program bin/backends_ranks <<< 'echo "1 ranks"; echo "1 ranks"'
pack
run run "$folder/out" 60 --dry && complain "a library that is not in the kit and ranks that do not meet pass"
line 'libraries: failed \(1\)'
line 'ranks: failed \(1\)'
echo broken > "$folder/root/.gpu/kit.tar.xz"
run run "$folder/out" 60 --dry && complain "a broken kit passes"
line 'unpack: failed \(2\)'
[[ $(wc -l < "$folder/out/results.txt") == 1 ]] || complain "the steps of a broken kit are run"
rm "$folder/root/.gpu/kit.tar.xz"
run run "$folder/out" 60 --dry && complain "a run without a kit passes"
grep -q 'there is no .*kit.tar.xz; expected one of scripts/gpu pack' "$folder/said" || complain "it does not say that there is no kit"
run run "$folder/out" && complain "a run without a limit is accepted"

# The real one.
if [[ -e $source/.gpu/kit.tar.xz ]]; then
  bash "$source/scripts/gpu" run "$folder/real" 400 --dry > "$folder/said" || { complain "the packed kit fails"; cat "$folder/said" "$folder/real/log.txt"; }
  grep ': passed' "$folder/said"
fi
((status == 0)) && echo "scripts/gpu runs its steps as it says"
exit $status
