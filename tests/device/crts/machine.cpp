// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The kernels on the machine's implementation: this unit is compiled as C++17, as the cores'
// compiler would.

#define HEDDLE_CORE_GROUP_CRTS

#include <cstddef>

#include <heddle/device/core_group.hpp>

#include "kernels.hpp"

namespace heddle_crts_test {

static_assert(__cplusplus < 202002L, "this unit shows that C++17 is enough");

namespace {

struct Forgets {
  const float* in;
  void operator()(heddle::Core& core) const { core.get(core.allocate(4), in, 4, core.reply()); }
};

struct Largest {
  std::size_t* bytes;
  void operator()(heddle::Core& core) const {
    (void)core.allocate(core.local_free() - 32);  // alignment takes some
    if (core.index() == 0) *bytes = core.mark();
    core.count_direct_stores(1);
  }
};

}  // namespace

Results run_on_machine() {
  heddle::CoreGroup group;
  return run_kernels(group);
}

void run_without_a_wait_on_machine() {
  const float number = 0;
  heddle::CoreGroup group;
  group.launch("forgets", Forgets{&number});
}

std::size_t largest_block_on_machine() {
  std::size_t bytes = 0;
  heddle::CoreGroup group;
  group.launch("largest", Largest{&bytes});
  return group.options().heap() - bytes;
}

}  // namespace heddle_crts_test
