// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RunnerCore: the part of a Runner that does not depend on the types of its model and place, and
/// ModelRef: the model as it sees it.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/prepare.hpp>
#include <heddle/execute/run_options.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::impl {

// The optional members of a model that concern the buffers that it does not hold; prepare.hpp says
// why these are concepts.

/// A model that allocates the other buffers.
template <class M>
concept Allocates = requires(M& model, Bytes bytes) {
  { model.allocate(bytes) } -> std::convertible_to<std::shared_ptr<std::byte>>;
};
/// A model whose steps use a part of the buffers.
template <class M>
concept SizesSteps = requires(M& model, const Action& action, const Buffer& buffer,
                              std::uint32_t part) {
  { model.used_bytes(action, buffer, part) } -> std::convertible_to<Bytes>;
};

/// A reference to a model, by its optional members for buffers. Those that it does not have are
/// null.
struct ModelRef {
  void* model = nullptr;
  std::shared_ptr<std::byte> (*allocate)(void*, Bytes) = nullptr;
  Bytes (*used_bytes)(void*, const Action&, const Buffer&, std::uint32_t) = nullptr;
};

/// Returns a reference to `model`.
template <class M>
[[nodiscard]] ModelRef model_ref(M& model) {
  ModelRef ref;
  if constexpr (std::is_object_v<M>)  // not a plain function, which has no members
    ref.model = const_cast<std::remove_const_t<M>*>(std::addressof(model));
  if constexpr (Allocates<M>)
    ref.allocate = [](void* object, Bytes bytes) -> std::shared_ptr<std::byte> {
      return static_cast<M*>(object)->allocate(bytes);
    };
  else
    static_assert(
        !requires { &M::allocate; }, "heddle::Runner: the model's allocate takes (bytes)");
  if constexpr (SizesSteps<M>)
    ref.used_bytes = [](void* object, const Action& action, const Buffer& buffer,
                        std::uint32_t part) -> Bytes {
      return static_cast<M*>(object)->used_bytes(action, buffer, part);
    };
  else
    static_assert(
        !requires { &M::used_bytes; },
        "heddle::Runner: the model's used_bytes takes (action, buffer, part) and returns Bytes");
  return ref;
}

/// Runs a Schedule with a model on a transport: the buffers, the executor and the recording of a
/// Runner, whose docstrings hold.
class RunnerCore {
 public:
  /// Allocates the buffers of `prepared` that the model does not hold. It refers to all other
  /// arguments. `carrier` carries the messages of the schedule, and `transport` all others.
  RunnerCore(const PreparedRun& prepared, const TransportRef& transport,
             const TransportRef& carrier, const ModelRef& model, const RunOptions& options);
  RunnerCore(const RunnerCore&) = delete;
  RunnerCore& operator=(const RunnerCore&) = delete;
  ~RunnerCore();

  /// Returns what `call` returns. If it throws, the other ranks are told that this one failed while
  /// `doing`.
  template <class Call>
  decltype(auto) told(const char* doing, Call&& call) {
    return report_on_error(call, [&](const char* reason) { fail(doing, reason); });
  }

  void step(Handler handler);
  void drain();
  void record(bool on);
  void profile(bool on) noexcept;
  [[nodiscard]] Timeline timeline();
  [[nodiscard]] Timeline timeline(Seconds offset);
  [[nodiscard]] TableCosts costs();
  void reset_costs();
  [[nodiscard]] const Schedule& schedule() const noexcept;
  [[nodiscard]] Bytes allocated() const noexcept;

 private:
  struct State;

  void fail(const char* doing, const char* reason) noexcept;

  std::unique_ptr<State> m_state;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/impl/runner_core.ipp>
#endif
