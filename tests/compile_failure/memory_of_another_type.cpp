// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::prepare: the model's memory takes (schedule, buffer) and returns a std::byte*

/// @file
/// A model whose memory returns something else is told: the Runner would compute in memory of its
/// own.

#include <cstddef>

#include <heddle/execute.hpp>

struct Model {
  double* weights;
#ifdef HEDDLE_OK
  std::byte* memory(const heddle::Schedule&, heddle::BufferId) {
    return reinterpret_cast<std::byte*>(weights);
  }
#else
  double* memory(const heddle::Schedule&, heddle::BufferId) { return weights; }
#endif
  void operator()(const heddle::Task&) {}
};

void use(heddle::ThreadTransport& transport, const heddle::Schedule& schedule) {
  heddle::Runner runner(Model{}, schedule, transport);
  runner.step();
}
