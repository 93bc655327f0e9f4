// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The machine's calls, on the emulated core group. It enforces the machine's rules here too: what
// the kernels do wrong, athread_join() throws.

#include <cstddef>
#include <cstdint>
#include <memory>

#include <heddle/device/core_group.hpp>

extern "C" {
#include <athread.h>
#include <slave.h>
}

namespace {

using heddle::Core;
using heddle::Reply;

struct Spawned {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  void operator()(Core&) const { function(argument); }
};

std::unique_ptr<heddle::CoreGroup> group;
Spawned spawned;

Core& core() { return *heddle::current_core(); }
std::size_t size(int bytes) { return static_cast<std::size_t>(bytes); }
/// The emulation counts in a word of its own kind, in the same place.
Reply& word(volatile athread_rply_t* reply) {
  static_assert(sizeof(athread_rply_t) == sizeof(Reply));
  return *reinterpret_cast<Reply*>(const_cast<athread_rply_t*>(reply));
}

}  // namespace

extern "C" {

int athread_init() {
  // What spawns the kernel takes some local memory, which the machine would not need.
  group = std::make_unique<heddle::CoreGroup>(
      heddle::CoreGroupOptions{.stack = 4 * 1024, .host_threads = 2});
  return 0;
}
int athread_halt() { return group.reset(), 0; }
int __real_athread_spawn(void* function, void* argument, int) {
  spawned = {reinterpret_cast<void (*)(void*)>(function), argument};
  return 0;
}
int athread_join() {
  group->launch("spawned", spawned, heddle::Cooperative::yes);
  return 0;
}

int mock_index() { return core().index(); }

void* ldm_malloc(int bytes) { return core().allocate(size(bytes), 128); }
void ldm_free(void*, int bytes) { core().release(core().mark() - size(bytes)); }

int athread_dma_get(void* to, void* from, int bytes) {
  const std::size_t mark = core().mark();
  Reply& reply = core().reply();
  core().get(to, from, size(bytes), reply);
  core().wait(reply, 1);
  core().release(mark);
  return 0;
}
int athread_dma_iget(void* to, void* from, int bytes, volatile athread_rply_t* reply) {
  return core().get(to, from, size(bytes), word(reply)), 0;
}
int athread_dma_iput(void* to, void* from, int bytes, volatile athread_rply_t* reply) {
  return core().put(to, from, size(bytes), word(reply)), 0;
}
int athread_dma_iget_stride(void* to, void* from, int bytes, int piece, int gap,
                            volatile athread_rply_t* reply) {
  return core().get_strided(to, from, size(bytes), size(piece), size(gap), word(reply)), 0;
}
int athread_dma_iput_stride(void* to, void* from, int bytes, int piece, int gap,
                            volatile athread_rply_t* reply) {
  return core().put_strided(to, from, size(bytes), size(piece), size(gap), word(reply)), 0;
}
int athread_dma_wait_value(volatile athread_rply_t* reply, int value) {
  return core().wait(word(reply), static_cast<std::uint32_t>(value)), 0;
}

int athread_rma_iput(void* local, volatile athread_rply_t* local_reply, int bytes, int to,
                     void* remote, volatile athread_rply_t* remote_reply) {
  return core().rma_put(to, remote, local, size(bytes), word(local_reply), word(remote_reply)), 0;
}
int athread_rma_iget(void* local, volatile athread_rply_t* local_reply, int bytes, int from,
                     void* remote, volatile athread_rply_t* remote_reply) {
  return core().rma_get(local, from, remote, size(bytes), word(local_reply), word(remote_reply)), 0;
}
int athread_rma_bcast_coll(void* to, void* from, int bytes, int root) {
  return core().broadcast(to, from, size(bytes), root), 0;
}
int athread_rma_row_bcast_coll(void* to, void* from, int bytes, int root) {
  return core().broadcast_row(to, from, size(bytes), root), 0;
}
int athread_rma_col_bcast_coll(void* to, void* from, int bytes, int root) {
  return core().broadcast_column(to, from, size(bytes), root), 0;
}

int athread_ssync_array() { return core().synchronise(), 0; }
int athread_ssync_row() { return core().synchronise_row(), 0; }
int athread_ssync_col() { return core().synchronise_column(), 0; }

}  // extern "C"
