// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::Runner: the model's end_step takes (transport, options)

/// @file
/// A model whose end_step takes other arguments is told: the Runner would not call it.

#include <heddle/execute.hpp>

struct Model {
#ifdef HEDDLE_OK
  void end_step(heddle::ThreadTransport&, const heddle::ExecuteOptions&) {}
#else
  void end_step(heddle::ThreadTransport&) {}
#endif
  void operator()(const heddle::Task&) {}
};

void use(heddle::ThreadTransport& transport, const heddle::Schedule& schedule) {
  heddle::Runner runner(Model{}, schedule, transport);
  runner.step();
}
