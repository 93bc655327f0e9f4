#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# test.sh LIBRARY COMPILER MEMORY TESTS: programs that know nothing of libheddle_malloc.so print the same
# with it as without: a shell with subshells, a compiler, what else the machine has of python3 and git,
# and TESTS of this project. Their calls are traced, and read by the program MEMORY.
set -euo pipefail
library=$1 compiler=$2 memory=$3 tests=$4
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

same() {  # same NAME COMMAND...
  local name=$1
  shift
  "$@" > without.txt || { echo "$name fails without $library: $(cat without.txt)" >&2; exit 1; }
  if ! LD_PRELOAD=$library HEDDLE_MALLOC_REPORT=1 "$@" > with.txt 2> report.txt; then
    echo "$name fails with $library:" >&2
    cat report.txt >&2
    exit 1
  fi
  if ! cmp without.txt with.txt; then
    echo "$name prints something else with $library" >&2
    exit 1
  fi
  if ! grep -q '^heddle_malloc: [0-9]* B reserved' report.txt; then
    echo "$name did not run with $library" >&2
    exit 1
  fi
  echo "$name: $(sort -t' ' -k2n report.txt | grep '^heddle_malloc' | tail -1)"
}

same bash bash -c 'for i in $(seq 300); do a+=$i; done; echo ${#a}; (echo sub; echo shell) | sort; echo $(echo $(echo nested))'

# The report says which process it is of.
report=$(OMPI_COMM_WORLD_RANK=3 LD_PRELOAD=$library HEDDLE_MALLOC_REPORT=1 \
  bash -c $'a=1\nexit 0' own "two words" 2>&1)
[[ $report =~ B\ idle,\ process\ [1-9][0-9]*,\ rank\ 3:\ bash\ -c\ a=1\ exit\ 0\ own\ two\ words$ ]] ||
  { echo "the report does not say which process it is of: $report" >&2; exit 1; }
report=$(LD_PRELOAD=$library HEDDLE_MALLOC_REPORT=1 bash -c 'exit 0' "$(printf '%02000d' 0)" 2>&1)
[[ $report =~ :\ bash\ -c\ exit\ 0\ 0+\.\.\.$ ]] ||
  { echo "a long command line is not cut: $report" >&2; exit 1; }

# A program that closes its standard error before it ends, as sort does.
report=$(echo 1 | LD_PRELOAD=$library HEDDLE_MALLOC_REPORT=1 sort 2>&1 > sorted.txt)
[[ $report =~ ^heddle_malloc:\ .*:\ sort$ && $(cat sorted.txt) == 1 ]] ||
  { echo "the report of a program that closes its standard error is lost: $report" >&2; exit 1; }

# Where a process may have few addresses, and blocks are refused.
(ulimit -v 1000000; same "bash in 1 GB" bash -c 'echo $(echo $(echo nested)) | sort')
if command -v python3 > /dev/null; then
  (ulimit -v 4000000; same "python3 in 4 GB" timeout 60 python3 -c '
try:
    bytearray(1 << 33)
except MemoryError:
    print("refused", len([bytearray(1 << 20) for block in range(500)]))')
fi

# The same outcome of every entry point as without: sizes and alignments of all kinds.
cat > entry.cpp << 'SOURCE'
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <string>

static void say(const std::string& call, void* block, std::size_t bytes, std::size_t alignment) {
  std::size_t rounded = 1;
  while (rounded < alignment && rounded < (SIZE_MAX / 2 + 1)) rounded *= 2;
  const bool fits = block == nullptr || (reinterpret_cast<std::uintptr_t>(block) % rounded == 0 &&
                                         malloc_usable_size(block) >= bytes);
  std::printf("%s: %s, errno %d%s\n", call.c_str(), block == nullptr ? "none" : "block",
              block == nullptr ? errno : 0, fits ? "" : ", too small or not aligned");
  if (block != nullptr) std::memset(block, 1, bytes);
  std::free(block);
  errno = 0;
}

int main() {
  const volatile std::size_t sizes[] = {0, 1, 40, 5000, SIZE_MAX, SIZE_MAX - 31, SIZE_MAX - 5000,
                                        SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX / 2 - 5000};
  const volatile std::size_t alignments[] = {
      0, 1, 2, 3, 7, 8, 16, 24, 48, 96, 100, 4095, 5000, (1 << 20) + 1, SIZE_MAX / 2 + 1,
      SIZE_MAX / 2 + 2, SIZE_MAX};
  for (const std::size_t bytes : sizes) {
    const std::string size = std::to_string(bytes);
    errno = 0;
    say("malloc " + size, malloc(bytes), bytes, 16);
    say("calloc 1 " + size, calloc(1, bytes), bytes, 16);
    say("calloc " + size + " 3", calloc(bytes, 3), 3 * bytes, 16);
    say("valloc " + size, valloc(bytes), bytes, 4096);
    say("pvalloc " + size, pvalloc(bytes), (bytes + 4095) / 4096 * 4096, 4096);
    say("realloc nothing " + size, realloc(nullptr, bytes), bytes, 16);
    say("reallocarray nothing " + size + " 2", reallocarray(nullptr, bytes, 2), 2 * bytes, 16);
    for (const std::size_t count : {1, 3}) {
      auto* const had = static_cast<char*>(malloc(6));
      std::strcpy(had, "12345");
      errno = 0;
      void* const block = reallocarray(had, bytes, count);
      const bool kept = bytes > SIZE_MAX / 4 ? std::strcmp(had, "12345") == 0
                                             : std::memcmp(block == nullptr ? "" : block, "12345",
                                                           bytes < 5 ? bytes : 5) == 0;
      if (!kept) std::printf("not kept\n");
      say("reallocarray " + size, block, bytes * count, 16);
      if (bytes > SIZE_MAX / 4) std::free(had);
    }
    for (const std::size_t alignment : alignments) {
      const std::string at = " " + std::to_string(alignment) + " " + size;
      say("memalign" + at, memalign(alignment, bytes), bytes, alignment);
      // Of other alignments C libraries differ.
      if ((alignment & (alignment - 1)) == 0 && alignment != 0)
        say("aligned_alloc" + at, aligned_alloc(alignment, bytes), bytes, alignment);
      void* block = nullptr;
      const int error = posix_memalign(&block, alignment, bytes);
      say("posix_memalign returns " + std::to_string(error) + at, block, bytes, alignment);
    }
  }
  errno = 7;
  std::free(malloc(100));
  std::free(nullptr);
  std::printf("errno %d, %zu\n", errno, malloc_usable_size(nullptr));
}
SOURCE
"$compiler" -std=c++20 -O1 -w -fno-builtin entry.cpp -o entry
same "entry points" ./entry

. "$folder/limits.sh"

cat > program.cpp << 'SOURCE'
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <malloc.h>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>
#include <sys/wait.h>
#include <vector>

static void expect(bool ok, const char* what) {
  if (ok) return;
  std::printf("not so: %s\n", what);
  std::exit(1);
}

int main() {
  for (std::size_t alignment = 8; alignment <= (1 << 21); alignment *= 2)
    for (std::size_t bytes : {0, 1, 100, 4096, 70000, 3000000}) {
      void* block = nullptr;
      expect(posix_memalign(&block, alignment, bytes) == 0, "posix_memalign");
      expect(reinterpret_cast<std::uintptr_t>(block) % alignment == 0, "is aligned");
      expect(malloc_usable_size(block) >= bytes, "is as large");
      std::memset(block, 1, bytes);
      free(block);
    }
  void* nothing = nullptr;
  expect(posix_memalign(&nothing, 24, 8) == EINVAL, "no power of two");
  volatile std::size_t huge = SIZE_MAX / 2;
  errno = 0;
  expect(malloc(huge) == nullptr && errno == ENOMEM, "there is not so much");
  expect(calloc(huge, 4) == nullptr && errno == ENOMEM, "a product that does not fit");
  bool refused = false;
  try {
    char* volatile block = new char[huge];
    delete[] block;
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  expect(refused, "new throws");
  // A calloc of memory that was written.
  for (int round = 0; round < 100; ++round) {
    auto* bytes = static_cast<unsigned char*>(malloc(5000));
    std::memset(bytes, 0xff, 5000);
    free(bytes);
    bytes = static_cast<unsigned char*>(calloc(50, 100));
    for (int i = 0; i < 5000; ++i) expect(bytes[i] == 0, "zero");
    free(bytes);
  }
  // Growing and shrinking keeps what was there.
  auto* grown = static_cast<unsigned char*>(malloc(1));
  grown[0] = 42;
  for (std::size_t had = 1, bytes = 2; bytes < (1 << 24); had = bytes, bytes = bytes * 3 / 2 + 1) {
    grown = static_cast<unsigned char*>(realloc(grown, bytes));
    for (std::size_t i = 0; i < had; ++i) expect(grown[i] == 42, "kept by a larger block");
    std::memset(grown, 42, bytes);
  }
  for (std::size_t bytes = 1 << 23; bytes > 0; bytes /= 3) {
    grown = static_cast<unsigned char*>(realloc(grown, bytes));
    for (std::size_t i = 0; i < bytes; ++i) expect(grown[i] == 42, "kept by a smaller block");
  }
  free(grown);
  // What is free between blocks goes back when that is asked for.
  std::vector<void*> all(400);
  for (void*& block : all) std::memset(block = malloc(1 << 20), 7, 1 << 20);
  for (std::size_t b = 0; b < all.size(); ++b)
    if (b % 4 != 3) free(all[b]);
  malloc_trim(0);
  long pages = 0, resident = 0;
  std::FILE* const statm = std::fopen("/proc/self/statm", "r");
  expect(statm != nullptr && std::fscanf(statm, "%ld %ld", &pages, &resident) == 2, "statm");
  std::fclose(statm);
  expect(resident * sysconf(_SC_PAGESIZE) < (200 << 20), "free pages went back");
  for (std::size_t b = 3; b < all.size(); b += 4) {
    expect(static_cast<char*>(all[b])[(1 << 20) - 1] == 7, "not those that are used");
    free(all[b]);
  }
  // Threads that give back what others took, and a fork while they are at it.
  std::vector<std::thread> threads;
  std::vector<std::vector<std::string>> made(4);
  for (std::size_t t = 0; t < made.size(); ++t)
    threads.emplace_back([&made, t] {
      for (std::size_t i = 0; i < 20000; ++i) made[t].emplace_back(i % 3000, char('a' + t));
    });
  for (int f = 0; f < 20; ++f) {
    const pid_t child = fork();
    if (child == 0) {
      std::map<int, std::string> map;
      for (int i = 0; i < 1000; ++i) map[i] = std::string(static_cast<std::size_t>(i), 'x');
      _exit(map.size() == 1000 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    expect(status == 0, "a child has memory");
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t sum = 0;
  for (const auto& strings : made)
    for (const std::string& string : strings) sum += string.size();
  std::printf("%zu\n", sum);
}
SOURCE
same compiler "$compiler" -std=c++20 -O1 -fno-builtin -pthread program.cpp -o program
same program ./program

if command -v python3 > /dev/null; then
  same python3 python3 -c '
import json, subprocess, threading
words = [str(i) * 10 for i in range(100000)]
print(len(json.dumps(words)))
def work():
    blocks = [bytes(i % 5000) for i in range(20000)]
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout)'
fi
if command -v git > /dev/null; then
  git init -q repository
  cd repository
  for i in $(seq 40); do seq $((i * 100)) > "file$i"; done
  git add -A
  git -c user.name=a -c user.email=a@b commit -qm files
  same git git -c core.pager=cat log --stat
  same "git gc" git gc --quiet
  same "git fsck" git fsck --full
fi

cd "$work"
same tests "$tests" --rng-seed 1 --filenames-as-tags '[#passes],[#generators],[#errors],[#checkpoint],[#weave_graphs],[#pool]'

# Traces: of a program that ends while its threads go on, that is killed, that becomes another one, and
# whose files may not be large.
cat > traced.cpp << 'SOURCE'
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>

int main(int argc, char** argv) {
  const std::string what = argv[1];
  void* volatile block = nullptr;
  for (int i = 0; i < 1000; ++i) {
    block = std::malloc(123);
    if (i % 2 == 0) std::free(block);
  }
  if (what == "threads") {
    for (int t = 0; t < 3; ++t)
      std::thread([] {
        for (void* volatile other = nullptr;; std::free(other)) other = std::malloc(77);
      }).detach();
    usleep(3000);
  }
  if (what == "killed") raise(SIGKILL);
  if (what == "becomes") execl(argv[0], argv[0], "ends", nullptr);
}
SOURCE
"$compiler" -std=c++20 -O1 -fno-builtin -pthread traced.cpp -o traced
fail() { echo "$*" >&2; exit 1; }
trace() {  # trace WHAT STATUS: of each process the blocks of 123 B that it has left, in blocks.txt
  rm -f events.*
  local status=0 file
  HEDDLE_MALLOC_TRACE=$work/events LD_PRELOAD=$library ./traced "$1" 2> /dev/null || status=$?
  [[ $status == "$2" ]] || fail "a traced program that $1 ends with $status"
  for file in events.*; do
    [[ $(stat -c %s "$file") -lt 100000000 ]] || fail "$1: $file is of $(stat -c %s "$file") B"
    "$memory" import "$file" "$file.trace"
    awk '$1 == "+" { bytes[taken++] = $3; left += $3 == 123 }
         $1 == "-" { left -= bytes[$3] == 123 } END { print left }' "$file.trace"
  done > blocks.txt
}
trace ends 0
[[ $(cat blocks.txt) == 500 ]] || fail "a traced program has left $(cat blocks.txt) blocks"
for _ in $(seq 10); do trace threads 0; done
trace killed 137
[[ $(cat blocks.txt) == 500 ]] || fail "a program that is killed has left $(cat blocks.txt) blocks"
trace becomes 0
[[ $(tr '\n' ' ' < blocks.txt) == '500 500 ' ]] || fail "two programs have left $(cat blocks.txt)"
# Of a call that a program had not written when it ended, only some fields may lie in the file.
{
  printf 'heddle malloc events: 1\n'
  printf '\1\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0'
  printf '\2\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\1\0\0\0\10\0\0\0'
} > events.torn
"$memory" import events.torn torn.trace
[[ $(grep -c '^+' torn.trace) == 1 ]] || fail "a call that is not whole is read as $(cat torn.trace)"
rm -f events.*
# Its own file is where a program would have the trace's.
HEDDLE_MALLOC_TRACE=$work/events LD_PRELOAD=$library bash -c \
  'exec 3> own.txt; echo hello >&3; for i in $(seq 3000); do a+=$i; done' || fail "a program with a file 3"
[[ $(cat own.txt) == hello && $(stat -c %s own.txt) == 6 ]] || fail "a program's file is written to"
(ulimit -f 100; HEDDLE_MALLOC_TRACE=$work/events LD_PRELOAD=$library ./traced ends) ||
  fail "a program that may write 100 KiB ends as its trace does not fit"
(ulimit -v 1000000; trace ends 0; [[ $(cat blocks.txt) == 500 ]]) || fail "a trace under a limit"
