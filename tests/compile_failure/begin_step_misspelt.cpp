// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::Runner: nothing calls the model's member 'begin_steps', did you mean
// 'begin_step'?

/// @file
/// A misspelt optional member of a model is an error, because the Runner would never call it.

#include <heddle/execute.hpp>

struct Model {
#ifdef HEDDLE_OK
  void begin_step() {}
#else
  void begin_steps() {}
#endif
  void operator()(const heddle::Task&) {}
};

void use(heddle::ThreadTransport& transport, const heddle::Schedule& schedule) {
  heddle::Runner runner(Model{}, schedule, transport);
  runner.step();
}
