#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Part of test.sh: under a limit of addresses, programs get nearly as much memory with the library as
# without.

# fill SIZE... allocates blocks of each size until there are no more, prints
# how many, and frees all.
cat > fill.cpp << 'SOURCE'
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

struct Block {
  Block* next;
};
static std::size_t filled_by(std::size_t bytes) {
  std::size_t count = 0;
  Block* all = nullptr;
  errno = 0;
  while (auto* const block = static_cast<Block*>(malloc(bytes))) {
    block->next = all;
    all = block;
    ++count;
  }
  if (errno != ENOMEM) std::abort();
  while (all != nullptr) {
    Block* const block = all;
    all = block->next;
    free(block);
  }
  return count;
}
static pthread_barrier_t at_end;
/// Leaves blocks of many sizes in the cache of its thread, and waits.
static void* cache(void*) {
  void* blocks[64];
  for (std::size_t bytes = 16; bytes < 200000; bytes = bytes * 9 / 8 + 1) {
    for (void*& block : blocks) block = malloc(bytes);
    for (void* const block : blocks) free(block);
  }
  pthread_barrier_wait(&at_end);
  pthread_barrier_wait(&at_end);
  return nullptr;
}
static std::size_t threads(std::size_t count) {
  pthread_barrier_init(&at_end, nullptr, static_cast<unsigned>(count + 1));
  for (pthread_t thread; count > 0; --count)
    if (pthread_create(&thread, nullptr, cache, nullptr) != 0) std::exit(1);
  pthread_barrier_wait(&at_end);
  return filled_by(1 << 20);
}

int main(int count, char** words) {
  if (std::strcmp(words[1], "limit") == 0) {  // set by the program itself
    free(malloc(1));
    const rlimit limit{400 << 20, 400 << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    std::printf("%zu\n", threads(1));
  } else if (std::strcmp(words[1], "threads") == 0) {
    std::printf("%zu\n", threads(8));
  } else if (std::strcmp(words[1], "crowd") == 0) {  // threads that cache while there is much
    filled_by(1000);
    std::printf("%zu\n", threads(32));
  } else if (std::strcmp(words[1], "after") == 0) {  // others have memory again
    filled_by(1000);
    void* const map =
        mmap(nullptr, 80 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::printf("%zu\n", map == MAP_FAILED ? 0 : threads(1));
  } else {
    for (int word = 1; word < count; ++word)
      std::printf("%zu\n", filled_by(std::strtoull(words[word], nullptr, 10)));
  }
  std::fflush(stdout);
  std::_Exit(0);
}
SOURCE
"$compiler" -std=c++20 -O1 -w -fno-builtin -pthread fill.cpp -o fill
# fills MB LEAST WORD...: what fill says in MB, with the library, is at least LEAST % of what it says
# without. Of blocks that are larger than a tenth of MB there may be one less.
fills() {
  local mb=$1 least=$2 theirs ours
  shift 2
  theirs=$(ulimit -v $((mb << 10)); ulimit -s 512; ./fill "$@")
  ours=$(ulimit -v $((mb << 10)); ulimit -s 512; LD_PRELOAD=$library ./fill "$@") ||
    { echo "in $mb MB: fill $* ends with $?" >&2; exit 1; }
  paste <(echo "$theirs") <(echo "$ours") <(printf '%s\n' "$@") |
    awk -v mb="$mb" -v least="$least" '
      100 * ($2 + ($3 * 10 > mb * 1048576)) < least * $1 {
        print "in " mb " MB: " $2 " blocks, not " $1 " (" $3 ")"
        bad = 1
      }
      END { exit bad }' >&2 || exit 1
}
for mb in 200 400 1000; do fills $mb 90 1048576; done
fills 1000 90 67108864
# Sizes just above one of the pool's classes.
fills 200 90 33000 66000 100000 132000 200000
fills 400 90 33000 66000 100000 132000 200000
# Sizes just above one of the classes of slabs.
for mb in 200 400; do fills $mb 90 520 1030 2050 4100 8200 9300 16400; done
# Every size after every other one.
fills 200 90 40 40 1000 40 20000 40 1048576 40 5000000 1000 1000 20000 1000 1048576 1000 5000000 20000 \
  20000 1048576 20000 5000000 1048576 1048576 5000000 5000000 40
fills 400 90 1048576 40 67108864
# at_least MB LIMIT WORD: so many blocks of 1 MB where fill WORD runs under LIMIT.
at_least() {
  local blocks
  blocks=$([[ $2 == none ]] || ulimit -v $(($2 << 10)); ulimit -s 512; LD_PRELOAD=$library ./fill "$3") &&
    ((blocks >= $1)) || { echo "in $2 MB: fill $3 has ${blocks:-nothing}, not $1 MB" >&2; exit 1; }
}
at_least 370 400 threads  # what 8 threads cache serves, too
at_least 350 none limit
at_least 355 400 crowd  # the stacks of 32 have 16 MB
at_least 90 200 after  # of the 120 MB that are left
# With few addresses there is some memory, with fewer there is none, but no crash.
for mb in 6 8 20; do (ulimit -v $((mb << 10)); LD_PRELOAD=$library ./fill 40 > few.txt 2> few_errors.txt) ||
  grep -q 'error while loading' few_errors.txt || { echo "fails in $mb MB" >&2; exit 1; }; done
(($(cat few.txt) > 0)) || { echo "no memory in 20 MB" >&2; exit 1; }
