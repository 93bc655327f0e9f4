// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StreamStages: the functions of a stream(), applied to one token or to the batches of a slot.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <heddle/core/units.hpp>

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

/// How the tokens of a batch are aligned.
inline constexpr std::size_t batch_alignment = 64;

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

/// A source, stage 0, and functions, each of which takes what the one before it returns. A slot
/// holds what each of them makes of one batch, one block of tokens after the other.
template <class Source, class... Functions>
class StreamStages {
  using Made = typename std::invoke_result_t<Source&>::value_type;
  using Tokens = typename TokenTypes<Made, Functions...>::type;
  static_assert(lie_as_bytes<Tokens>,
                "heddle::stream: tokens are trivially copyable and aligned to at most 64 bytes");

 public:
  static constexpr std::size_t count = 1 + sizeof...(Functions);
  /// Of every stage: whether it is called for one batch after the other.
  static constexpr std::array<bool, count> serial = {true, !is_parallel<Functions>...};

  StreamStages(Source& source, std::tuple<Functions&...> functions, std::uint32_t batch)
      : m_source(&source), m_functions(functions), m_batch(batch) {}

  /// The most tokens of a batch.
  [[nodiscard]] std::uint32_t batch() const noexcept { return m_batch; }
  /// The bytes of a slot.
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return begin_of<count - 1>(); }

  /// Takes `most` tokens from the source, at least 1, or fewer where it ends, through all
  /// functions. Returns how many there were.
  [[nodiscard]] std::uint64_t pass(std::uint64_t most) {
    // In a loop that begins with the functions, what the last one writes can stay in registers.
    auto token = (*m_source)();
    if (!token) return 0;
    for (std::uint64_t passed = 1;; ++passed) {
      hand<1>(*token);
      if (passed == most) return passed;
      token = (*m_source)();
      if (!token) return passed;
    }
  }

  /// Fills the slot from the source. Returns the tokens: fewer than batch() where it has ended.
  [[nodiscard]] std::uint32_t fill(std::byte* slot) {
    Made* const made = tokens<0>(slot);
    std::uint32_t filled = 0;
    for (; filled < m_batch; ++filled) {
      const auto token = (*m_source)();
      if (!token) break;
      std::construct_at(made + filled, *token);
    }
    return filled;
  }

  /// Applies `stage`, not the source, to the `filled` tokens of the slot.
  void apply(std::size_t stage, std::byte* slot, std::uint32_t filled) {
    [&]<std::size_t... F>(std::index_sequence<F...>) {
      ((stage == F + 1 ? apply<F + 1>(slot, filled) : void()), ...);
    }
    (std::index_sequence_for<Functions...>());
  }

 private:
  template <std::size_t S, class T>
  void hand(const T& token) {
    auto& function = std::get<S - 1>(m_functions);
    if constexpr (S + 1 < count)
      hand<S + 1>(function(token));
    else
      function(token);
  }

  template <std::size_t S>
  void apply(std::byte* slot, std::uint32_t filled) {
    auto& function = std::get<S - 1>(m_functions);
    const auto* const taken = tokens<S - 1>(slot);
    if constexpr (S + 1 < count) {
      auto* const made = tokens<S>(slot);
      for (std::uint32_t i = 0; i < filled; ++i) std::construct_at(made + i, function(taken[i]));
    } else {
      for (std::uint32_t i = 0; i < filled; ++i) function(taken[i]);
    }
  }

  /// What stage S makes.
  template <std::size_t S>
  [[nodiscard]] auto* tokens(std::byte* slot) const noexcept {
    return reinterpret_cast<std::tuple_element_t<S, Tokens>*>(slot + begin_of<S>());
  }

  template <std::size_t S>
  [[nodiscard]] std::size_t begin_of() const noexcept {
    if constexpr (S == 0) {
      return 0;
    } else {
      const std::size_t end =
          begin_of<S - 1>() + m_batch * sizeof(std::tuple_element_t<S - 1, Tokens>);
      return (end + batch_alignment - 1) / batch_alignment * batch_alignment;
    }
  }

  Source* m_source;
  std::tuple<Functions&...> m_functions;
  std::uint32_t m_batch;
};

}  // namespace impl
}  // namespace heddle::inline v0
