// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// stream(): plain functions as a pipeline over threads of one process. Tokens travel in batches,
/// which are the microbatches of a Schedule. Needs neither MPI nor Kokkos.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/schedule/generator/pipeline.hpp>

namespace heddle::inline v0 {

/// How stream() divides the work, and how much of it may be under way.
struct StreamOptions {
  int threads = 2;            ///< at most one per stage
  std::uint32_t batch = 64;   ///< tokens that travel together: fewer for latency, more for speed
  std::uint32_t waiting = 8;  ///< batches that may wait between two threads
  /// Neighbouring stages that share a thread; as equal in number as can be where empty.
  std::vector<int> stages_per_thread = {};
  Idle idle = Idle::yield;  ///< how far a waiting thread gives up its core
};

namespace impl {

/// What goes before the tokens of a batch.
struct BatchHeader {
  std::uint32_t count = 0;  ///< tokens that follow
  bool last = false;        ///< no token comes after these
};

/// Where tokens begin, and how batches are aligned.
inline constexpr std::size_t batch_alignment = 64;

/// The bytes of a batch of `tokens` T.
template <class T>
[[nodiscard]] constexpr Bytes batch_bytes(std::uint32_t tokens) noexcept {
  const Bytes bytes = batch_alignment + Bytes{tokens} * sizeof(T);
  return (bytes + batch_alignment - 1) / batch_alignment * batch_alignment;
}

/// A batch in the memory of a part.
template <class T>
struct Batch {
  explicit Batch(std::byte* memory)
      : header(reinterpret_cast<BatchHeader*>(memory)),
        tokens(reinterpret_cast<T*>(memory + batch_alignment)) {}

  BatchHeader* header;
  T* tokens;
};

/// Whether tokens of all these types may be copied as bytes from one thread's batch to another's.
template <class Tokens>
inline constexpr bool travel_as_bytes = false;
template <class... T>
inline constexpr bool travel_as_bytes<std::tuple<T...>> =
    ((std::is_trivially_copyable_v<T> && alignof(T) <= batch_alignment) && ...);

/// The types of the tokens between the stages, from what the source makes on.
template <class Made, class... Functions>
struct TokenTypes {
  using type = std::tuple<Made>;
};
template <class Made, class Function, class... Functions>
struct TokenTypes<Made, Function, Functions...> {
  static_assert(std::invocable<Function&, const Made&>,
                "heddle::stream: a stage takes what the stage before it returns");
  using Result = std::remove_cvref_t<std::invoke_result_t<Function&, const Made&>>;
  static_assert(!std::is_void_v<Result>,
                "heddle::stream: every stage but the last returns a token");
  using type =
      decltype(std::tuple_cat(std::declval<std::tuple<Made>>(),
                              std::declval<typename TokenTypes<Result, Functions...>::type>()));
};
template <class Made, class Function>
struct TokenTypes<Made, Function> {
  static_assert(std::invocable<Function&, const Made&>,
                "heddle::stream: a stage takes what the stage before it returns");
  using type = std::tuple<Made>;  // what the last stage returns goes nowhere
};

/// The stages as a Model, one object per thread; a stage is called by one thread only.
template <class Source, class... Functions>
class StreamModel {
  using Token = typename std::invoke_result_t<Source&>::value_type;
  using Tokens = typename TokenTypes<Token, Functions...>::type;
  static constexpr std::size_t stages = 1 + sizeof...(Functions);
  static_assert(travel_as_bytes<Tokens>,
                "heddle::stream: tokens are trivially copyable and aligned to at most 64 bytes");

 public:
  StreamModel(Source& source, std::tuple<Functions&...> functions, std::uint32_t batch)
      : m_source(&source), m_functions(functions), m_batch(batch) {}

  /// Called by Runner: batches have the size of their tokens.
  template <class P>
  [[nodiscard]] Schedule prepare(const Schedule& schedule, P&, const ExecuteOptions&) const {
    return schedule.with_sizes([&](Buffer& buffer) {
      const std::string& role = schedule[buffer.label];
      if (role == role::weights) return;
      buffer.bytes = buffer.parts * bytes_after(+buffer.stage - (role == role::input ? 1 : 0),
                                                std::make_index_sequence<stages - 1>());
    });
  }

  /// Called by Runner: one stage for one batch.
  void operator()(const Task& task) {
    return run(task.stage(), task.uses(), std::make_index_sequence<stages>());
  }

  /// Whether this thread has seen the last token.
  [[nodiscard]] bool ended() const noexcept { return m_ended; }
  /// Tokens that the source made, where it is called by this thread.
  [[nodiscard]] std::uint64_t made() const noexcept { return m_made; }

 private:
  template <std::size_t... S>
  [[nodiscard]] Bytes bytes_after(std::size_t stage, std::index_sequence<S...>) const {
    return std::array{batch_bytes<std::tuple_element_t<S, Tokens>>(m_batch)...}[stage];
  }

  template <std::size_t... S>
  void run(Stage stage, std::span<const BoundUse> uses, std::index_sequence<S...>) {
    using Call = void (StreamModel::*)(std::span<const BoundUse>);
    static constexpr std::array<Call, stages> calls = {&StreamModel::call<S>...};
    (this->*calls[+stage])(uses);
  }

  template <std::size_t S>
  void call(std::span<const BoundUse> uses) {
    if constexpr (S == 0)
      fill(Batch<Token>(uses[0].data));
    else
      apply<S>(uses);
  }

  void fill(Batch<Token> made) {
    std::uint32_t count = 0;
    while (count < m_batch && !m_ended) {
      if (std::optional<Token> token = (*m_source)())
        std::construct_at(made.tokens + count++, *token);
      else
        m_ended = true;
    }
    std::construct_at(made.header, BatchHeader{count, m_ended});
    m_made += count;
  }

  template <std::size_t S>
  void apply(std::span<const BoundUse> uses) {
    auto& function = std::get<S - 1>(m_functions);
    const Batch<std::tuple_element_t<S - 1, Tokens>> taken(uses[0].data);
    const BatchHeader header = *taken.header;
    if constexpr (S + 1 < stages) {
      const Batch<std::tuple_element_t<S, Tokens>> made(uses[1].data);
      for (std::uint32_t i = 0; i < header.count; ++i)
        std::construct_at(made.tokens + i, function(std::as_const(taken.tokens[i])));
      std::construct_at(made.header, header);
    } else {
      for (std::uint32_t i = 0; i < header.count; ++i) function(std::as_const(taken.tokens[i]));
    }
    m_ended = header.last;
  }

  Source* m_source;
  std::tuple<Functions&...> m_functions;
  std::uint32_t m_batch;
  std::uint64_t m_made = 0;
  bool m_ended = false;
};

}  // namespace impl

/// Calls `source` until it returns an empty optional, and hands every token through the functions,
/// each of which takes what the one before it returns; what the last one returns is dropped. A
/// stage is called by one thread and sees the tokens in order; stages on different threads work at
/// the same time. Returns the number of tokens.
///
/// Tokens are trivially copyable and aligned to at most 64 bytes, or it does not compile (send an
/// index or a pointer for what is not); they are copied where they change threads. A batch leaves
/// when it is full or the source ends, so that a slow source wants a small one.
///
/// What a stage throws is thrown here, when all threads have stopped; tokens under way are lost.
/// @throws contract_error for options that make no pipeline.
template <class Source, class... Functions>
requires(sizeof...(Functions) >= 1) std::uint64_t
    stream(const StreamOptions& options, Source source, Functions... functions) {
  using Model = impl::StreamModel<Source, Functions...>;
  constexpr int stages = 1 + static_cast<int>(sizeof...(Functions));
  constexpr std::uint32_t most =
      1 << 20;  // of batches that wait: the list of a step has twice as many
  expects(
      options.threads >= 1 && options.batch >= 1 && options.waiting >= 1 && options.waiting <= most,
      [&] {
        return Complaint{
            "heddle::stream",
            text("threads, batch and waiting are at least one, waiting at most ", most),
            text("threads = ", options.threads, ", batch = ", options.batch,
                 ", waiting = ", options.waiting)};
      });
  const std::vector<int> division =
      options.stages_per_thread.empty()
          ? schedule::even_division(stages, std::min(options.threads, stages))
          : options.stages_per_thread;
  // Several batches a step, and storage for those that wait: no thread stops where a step ends.
  const Orders orders = schedule::stream_orders(division, 2 * static_cast<int>(options.waiting));
  expects(orders.graph.stages == stages, [&] {
    return Complaint{"heddle::stream", "the threads do not share out all stages",
                     text("stages_per_thread names ", orders.graph.stages, " of ", stages)};
  });
  const Schedule schedule = weave(orders);
  std::uint64_t tokens = 0;
  run_threads(schedule.ranks(), [&](ThreadTransport& transport) {
    Model model(source, std::tie(functions...), options.batch);
    Runner run(model, schedule, transport,
               {.execute = {.idle = options.idle, .watchdog = 0}, .slack = options.waiting});
    while (!model.ended()) run.step();
    run.drain();
    if (transport.rank() == Rank{0}) tokens = model.made();
  });
  return tokens;
}

}  // namespace heddle::inline v0
