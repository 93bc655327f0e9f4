// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::Runner::step: the model has no begin_step for these arguments

/// @file
/// Arguments of step() that the model does not take must not compile.

#include <heddle/execute.hpp>

struct Model {
  void operator()(const heddle::Task&) {}
};

void use(heddle::ThreadTransport& transport, const heddle::Schedule& schedule) {
  heddle::Runner runner(Model{}, schedule, transport);
#ifdef HEDDLE_OK
  runner.step();
#else
  runner.step("a batch");
#endif
}
