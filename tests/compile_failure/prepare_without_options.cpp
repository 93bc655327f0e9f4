// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::prepare: the model's prepare takes (schedule, place, options)

/// @file
/// A model whose prepare takes other arguments is told: the Runner would not call it.

#include <heddle/execute.hpp>

struct Model {
#ifdef HEDDLE_OK
  heddle::Schedule prepare(const heddle::Schedule& schedule, heddle::ThreadTransport&,
                           const heddle::ExecuteOptions&) {
    return schedule;
  }
#else
  heddle::Schedule prepare(const heddle::Schedule& schedule, heddle::ThreadTransport&) {
    return schedule;
  }
#endif
  void operator()(const heddle::Task&) {}
};

void use(heddle::ThreadTransport& transport, const heddle::Schedule& schedule) {
  heddle::Runner runner(Model{}, schedule, transport);
  runner.step();
}
