// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::Runner::step: the model has no begin_step for these arguments

/// @file
/// A model that takes a batch per step must get one: a step without it is not silently begun.

#include <heddle/execute.hpp>

struct Model {
  void begin_step(double) {}
  void operator()(const heddle::Task&) {}
};

void use(heddle::ThreadTransport& transport, const heddle::Schedule& schedule) {
  heddle::Runner runner(Model{}, schedule, transport);
#ifdef HEDDLE_OK
  runner.step(1.0);
#else
  runner.step();
#endif
}
