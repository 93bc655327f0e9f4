// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// alone: yes
// Passes over layers of which some lie in the memory of a peer, executed by two ranks on a shaped
// link with layers that wait: a pass takes what the closed forms say.

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/pass/peer_memory.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/rounds.hpp"

namespace test_peer_memory_waits {

using namespace heddle;

namespace {

constexpr int layers = 24, resident = 20;
constexpr Bytes layer_bytes = 8000;
constexpr Seconds layer = 3e-3;

/// Another transport, on which a message begins when its receive is posted, as large messages of
/// MPI do. So a copy cannot run ahead of its slot.
template <class T>
class Rendezvous {
 public:
  struct Request {
    typename T::Request message = {}, token = {};
    Rank peer = {};
    Lane lane = {};
    const std::byte* data = nullptr;  ///< of a send that has not begun
    Bytes bytes = 0;
  };

  explicit Rendezvous(T& inner) : m_inner(&inner) {}

  [[nodiscard]] Rank rank() const { return m_inner->rank(); }
  [[nodiscard]] int size() const { return m_inner->size(); }
  Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    return {{}, m_inner->receive(peer, tokens, &m_token, 1), peer, lane, data, bytes};
  }
  Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    return {m_inner->receive(peer, lane, data, bytes), m_inner->send(peer, tokens, &m_token, 1)};
  }
  [[nodiscard]] bool test(Request& request) {
    if (!m_inner->test(request.token)) return false;
    if (const std::byte* const data = std::exchange(request.data, nullptr))
      request.message = m_inner->send(request.peer, request.lane, data, request.bytes);
    return m_inner->test(request.message);
  }
  void cancel(Request& request) {
    m_inner->cancel(request.token);
    m_inner->cancel(request.message);
  }
  void abort(const Abort& abort) { m_inner->abort(abort); }
  [[nodiscard]] std::optional<Abort> aborted() { return m_inner->aborted(); }

 private:
  static constexpr Lane tokens{1000};
  T* m_inner;
  std::byte m_token{};
};

struct Case {
  double copy;  ///< layers that a copy takes
  int slots;
  bool clustered;
  double expected;  ///< layers that a pass takes
};

/// The layers that the passes of a Schedule take until the end of each, as simulated.
std::vector<double> simulated_ends(const Schedule& list, double copy) {
  const auto timeline =
      simulate(list, StageCosts{.forward = 1, .per_byte = copy / static_cast<double>(layer_bytes)},
               Sending::rendezvous);
  std::vector<double> ends;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[ActionId{i}].kind == Kind::forward &&
        +list[ActionId{i}].stage + 1 == std::size_t{layers})
      ends.push_back(timeline.spans()[i].end);
  return ends;
}

/// Returns the layers that a pass takes in steady state, from the begin of the run. So a late
/// wake-up makes it longer, and nothing makes it shorter. Fails the test if a layer read the
/// weights of another one.
double pass_time(const Case& each) {
  constexpr std::size_t passes = 4;
  Orders orders{.name = "layers", .ranks = {{}, {}}, .graph = StageGraph::chain(layers)};
  for (std::size_t p = 0; p < passes; ++p)
    for (int l = 0; l < layers; ++l) orders.ranks[0].push_back({Kind::forward, Stage{l}, Item{p}});
  std::vector<Stage> away;
  for (int l = resident; each.clustered && l < layers; ++l) away.push_back(Stage{l});
  const Schedule list = schedule::peer_memory(weave(orders, {.parameters = layer_bytes}), resident,
                                              {.slots = each.slots, .away = away});
  const std::vector<double> expected = simulated_ends(list, each.copy);
  REQUIRE(std::abs(expected[3] - expected[2] - each.expected) < 1e-9);
  // Weights are filled with the number of their layer, and slots with none.
  std::vector<std::vector<std::byte>> memory;
  for (const Buffer& buffer : list.buffers())
    memory.emplace_back(buffer.bytes, list[buffer.label] == role::weights
                                          ? static_cast<std::byte>(+buffer.stage)
                                          : std::byte{0xff});
  const Shape shape{.link = [&](Rank from, Rank, Seconds) {
    if (from == 0) return Link{};
    return Link{0, static_cast<double>(layer_bytes) / (each.copy * layer)};
  }};
  Seconds end = 0, start = 0;
  std::size_t read = 0;
  run_threads(2, [&](ThreadTransport& threads) {
    ShapedTransport shaped(threads, shape);
    Rendezvous transport(shaped);
    Seconds due = 0;
    const auto model = [&](const Task& task) {
      // A wait ends at a time that counts from the end of the wait before, unless the rank waited.
      const Seconds now = steady_seconds();
      due = (now - due < 1e-3 ? due : now) + layer;
      for (const BoundUse& use : task.uses())
        read += use.bytes == layer_bytes && use.data[0] == static_cast<std::byte>(+task.stage()) &&
                use.data[use.bytes - 1] == use.data[0];
      std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
      end = steady_seconds();
    };
    Executor executor(
        slice(list, threads.rank(), [&](BufferId id, const Buffer&) { return memory[+id].data(); }),
        transport, {.idle = Idle::nap});
    if (threads.rank() == 0) start = steady_seconds();
    executor.step(model);
    executor.drain();
  });
  REQUIRE(read == passes * layers);
  return ((end - start) / layer - expected[1]) / (passes - 2);
}

}  // namespace

TEST_CASE("24 layers, 20 resident, over a link: a pass takes what it is simulated to take") {
  for (const Case& each : {Case{3, 2, false, 24}, Case{3, 2, true, 28}, Case{3, 1, false, 24},
                           Case{3, 1, true, 33}, Case{30, 2, false, 120}}) {
    std::array forms{test::Form{
        text("copies of ", each.copy, " layers, ", each.slots, " slots, ",
             each.clustered ? "clustered" : "spread", ", expected ", each.expected, ", layers"),
        [&] { return pass_time(each); }}};
    const test::Spread& took = forms[0].spread;
    const auto holds = [&] { return took.median() <= 1.1 * each.expected; };
    if (!test::measure_in_rounds(forms, holds)) SKIP(test::no_result);
    INFO(forms[0].name << ": " << took);
    CHECK(took.least() >= 0.97 * each.expected);
    CHECK(took.median() <= 1.1 * each.expected);
  }
}

}  // namespace test_peer_memory_waits
