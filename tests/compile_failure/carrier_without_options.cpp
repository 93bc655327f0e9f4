// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::Runner: the model's carrier takes (transport, options)

/// @file
/// A model whose carrier takes other arguments is told: messages would go past it.

#include <heddle/execute.hpp>

struct Model {
#ifdef HEDDLE_OK
  heddle::ThreadTransport& carrier(heddle::ThreadTransport& transport,
                                   const heddle::ExecuteOptions&) {
    return transport;
  }
#else
  heddle::ThreadTransport& carrier(heddle::ThreadTransport& transport) { return transport; }
#endif
  void operator()(const heddle::Task&) {}
};

void use(heddle::ThreadTransport& transport, const heddle::Schedule& schedule) {
  heddle::Runner runner(Model{}, schedule, transport);
  runner.step();
}
