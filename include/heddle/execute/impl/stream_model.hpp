// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StreamModel: functions over tokens as the Model of a stream's Schedule, whose items are batches.

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

#include <heddle/core/units.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0 {

/// A stage of a stream() that may be called for several batches at once; see parallel().
template <class Function>
struct ParallelStage {
  Function function;  ///< called by several threads

  /// The stage's work.
  template <class Token>
  decltype(auto) operator()(const Token& token) {
    return function(token);
  }
};

namespace impl {

template <class F>
inline constexpr bool is_parallel = false;
template <class F>
inline constexpr bool is_parallel<ParallelStage<F>> = true;

/// What goes before the tokens of a batch.
struct BatchHeader {
  std::uint32_t count = 0;  ///< tokens that follow
  bool over = false;        ///< the source had ended before this step: there are none
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

/// Whether tokens of all these types may lie in memory that nobody constructs or destroys.
template <class Tokens>
inline constexpr bool lie_as_bytes = false;
template <class... T>
inline constexpr bool lie_as_bytes<std::tuple<T...>> =
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

/// What the calls of the source have come to. It is the source's state: one call after the other
/// sees it, on whatever thread.
struct SourceState {
  std::uint64_t made = 0;  ///< tokens
  bool ended = false;      ///< it has no more
  bool over = false;       ///< it had none left when the step began
};

/// The stages as a Model, one object per thread over the same functions.
template <class Source, class... Functions>
class StreamModel {
  using Token = typename std::invoke_result_t<Source&>::value_type;
  using Tokens = typename TokenTypes<Token, Functions...>::type;
  static_assert(lie_as_bytes<Tokens>,
                "heddle::stream: tokens are trivially copyable and aligned to at most 64 bytes");

 public:
  static constexpr std::size_t stages = 1 + sizeof...(Functions);

  StreamModel(SourceState& state, Source& source, std::tuple<Functions&...> functions,
              std::uint32_t batch)
      : m_state(&state), m_source(&source), m_functions(functions), m_batch(batch) {}

  /// The stages that may do several batches at once, for the generator.
  [[nodiscard]] static std::vector<bool> parallel() { return {false, is_parallel<Functions>...}; }

  /// Called by Runner: batches have the size of their tokens.
  template <class P>
  [[nodiscard]] Schedule prepare(const Schedule& schedule, P&, const ExecuteOptions&) const {
    return schedule.with_sizes([&](Buffer& buffer) {
      if (schedule[buffer.label] == role::weights) return;
      buffer.bytes =
          buffer.parts * bytes_after(+buffer.stage - 1, std::make_index_sequence<stages - 1>());
    });
  }

  /// Called by Runner: one stage for one batch.
  void operator()(const Task& task) { return run(task, std::make_index_sequence<stages>()); }

  /// Whether the step that this thread has done was one after the end.
  [[nodiscard]] bool over() const noexcept { return m_over; }

 private:
  template <std::size_t... S>
  [[nodiscard]] Bytes bytes_after(std::size_t stage, std::index_sequence<S...>) const {
    return std::array{batch_bytes<std::tuple_element_t<S, Tokens>>(m_batch)...}[stage];
  }

  template <std::size_t... S>
  void run(const Task& task, std::index_sequence<S...>) {
    using Call = void (StreamModel::*)(const Task&);
    static constexpr std::array<Call, stages> calls = {&StreamModel::call<S>...};
    (this->*calls[+task.stage()])(task);
  }

  template <std::size_t S>
  void call(const Task& task) {
    if constexpr (S == 0)
      fill(Batch<Token>(task.uses()[0].data), task.item() == Item{0});
    else
      apply<S>(task.uses());
  }

  void fill(const Batch<Token> made, bool first) {
    SourceState state = *m_state;
    if (first) state.over = state.ended;
    std::uint32_t count = 0;
    for (; count < m_batch && !state.ended; ++count) {
      const std::optional<Token> token = (*m_source)();
      if (!token) {
        state.ended = true;
        break;
      }
      std::construct_at(made.tokens + count, *token);
    }
    std::construct_at(made.header, BatchHeader{count, state.over});
    state.made += count;
    m_over = state.over;
    *m_state = state;
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
    m_over = header.over;
  }

  SourceState* m_state;
  Source* m_source;
  std::tuple<Functions&...> m_functions;
  std::uint32_t m_batch;
  bool m_over = false;
};

}  // namespace impl
}  // namespace heddle::inline v0
