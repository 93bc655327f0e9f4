// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StreamStages: the functions of a stream(), applied to one token or to the batches of a slot.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
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
  requires std::invocable<Function&, Token>
  decltype(auto) operator()(Token&& token) { return function(std::forward<Token>(token)); }
};

namespace impl {

template <class F>
inline constexpr bool is_parallel = false;
template <class F>
inline constexpr bool is_parallel<ParallelStage<F>> = true;

/// How far apart lies what two threads write.
inline constexpr std::size_t apart_for_threads = 64;

/// The type that a stage returns for a token, or a static_assert that says why the stage cannot be
/// called with one.
template <class Token, class Function>
struct StageResult {
  static_assert(std::movable<Token>, "heddle::stream: tokens are movable");
  static_assert(std::invocable<Function&, Token>,
                "heddle::stream: a stage takes what the stage before it returns, by value, as "
                "const T& or as T&&");
  using type = std::remove_cvref_t<std::invoke_result_t<Function&, Token>>;
};

/// The types of the tokens between the stages, from the type that the source makes on.
template <class Made, class Function, class... Functions>
struct TokenTypes {
  using Result = typename StageResult<Made, Function>::type;
  static_assert(!std::is_void_v<Result>,
                "heddle::stream: every stage but the last returns a token");
  using type =
      decltype(std::tuple_cat(std::declval<std::tuple<Made>>(),
                              std::declval<typename TokenTypes<Result, Functions...>::type>()));
};
template <class Made, class Function>
struct TokenTypes<Made, Function> : StageResult<Made, Function> {
  using type = std::tuple<Made>;  // what the last stage returns goes nowhere
};

/// How slots are aligned that hold tokens of all these types.
template <class Tokens>
inline constexpr std::size_t slot_alignment = 0;
template <class... T>
inline constexpr std::size_t slot_alignment<std::tuple<T...>> = std::max({apart_for_threads,
                                                                          alignof(T)...});

/// Consecutive tokens in the memory of a slot. The destructor destroys them, so that a stage that
/// throws leaves no token behind.
template <class T>
struct TokenRange {
  T* first;  ///< the first token
  T* last;   ///< behind the last token

  TokenRange(T* at, std::uint32_t count) noexcept : first(at), last(at + count) {}
  TokenRange(const TokenRange&) = delete;
  TokenRange& operator=(const TokenRange&) = delete;
  ~TokenRange() { std::destroy(first, last); }

  /// Constructs one more token: what `make()` returns.
  template <class Make>
  void append(Make&& make) {
    ::new (static_cast<void*>(last)) T(make());
    ++last;
  }
  /// Destroys the first token.
  void drop() noexcept { std::destroy_at(first++); }
  /// Leaves the tokens to the slot.
  void release() noexcept { first = last; }
};

/// A source, stage 0, and functions, each of which takes what the one before it returns. A slot has
/// a block of memory for the tokens of one batch for each of them, one block after the other; a
/// stage that works in place shares the block of the stage before it. The tokens of a batch that
/// waits for stage S are those in the block of stage S - 1; all other blocks of its slot hold no
/// objects. If a stage throws, its slot holds none at all.
template <class Source, class... Functions>
class StreamStages {
  using First = typename std::invoke_result_t<Source&>::value_type;
  using Tokens = typename TokenTypes<First, Functions...>::type;

 public:
  static constexpr std::size_t count = 1 + sizeof...(Functions);
  /// True for each stage that is called for one batch after another.
  static constexpr std::array<bool, count> serial = {true, !is_parallel<Functions>...};
  /// How a slot, and each of its blocks, is aligned.
  static constexpr std::size_t alignment = slot_alignment<Tokens>;

  StreamStages(Source& source, std::tuple<Functions&...> functions, std::uint32_t batch)
      : m_source(&source), m_functions(functions), m_batch(batch) {}

  /// The most tokens of a batch.
  [[nodiscard]] std::uint32_t batch() const noexcept { return m_batch; }
  /// The bytes of a slot, a multiple of `alignment`.
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
      token.reset();  // a source may wait for what a token holds
      token = (*m_source)();
      if (!token) return passed;
    }
  }

  /// Fills the slot from the source. Returns the tokens: fewer than batch() where it has ended.
  [[nodiscard]] std::uint32_t fill(std::byte* slot) {
    TokenRange made(tokens<0>(slot), 0);
    std::uint32_t filled = 0;
    for (; filled < m_batch; ++filled) {
      auto token = (*m_source)();
      if (!token) break;
      made.append([&]() -> First&& { return std::move(*token); });
    }
    made.release();
    return filled;
  }

  /// Applies `stage`, not the source, to the `filled` tokens of the slot, and destroys these.
  void apply(std::size_t stage, std::byte* slot, std::uint32_t filled) {
    at_stage(stage, [&]<std::size_t S>() { apply<S>(slot, filled); });
  }

  /// Destroys the `filled` tokens of a batch that waits for `stage`, not for the source.
  void destroy(std::size_t stage, std::byte* slot, std::uint32_t filled) noexcept {
    at_stage(stage, [&]<std::size_t S>() { std::destroy_n(tokens<S - 1>(slot), filled); });
  }

 private:
  /// Calls `work<stage>()`; the stage is not the source.
  template <class Work>
  static void at_stage(std::size_t stage, const Work& work) {
    [&]<std::size_t... F>(std::index_sequence<F...>) {
      ((stage == F + 1 ? work.template operator()<F + 1>() : void()), ...);
    }
    (std::index_sequence_for<Functions...>());
  }

  template <std::size_t S, class T>
  void hand(T& token) {
    auto& function = std::get<S - 1>(m_functions);
    if constexpr (S + 1 < count) {
      using Made = std::tuple_element_t<S, Tokens>;
      std::conditional_t<in_place<S>(), Made&&, Made> made(function(std::move(token)));
      hand<S + 1>(made);
    } else {
      function(std::move(token));
    }
  }

  template <std::size_t S>
  void apply(std::byte* slot, std::uint32_t filled) {
    auto& function = std::get<S - 1>(m_functions);
    TokenRange taken(tokens<S - 1>(slot), filled);
    const auto work = [&]() -> decltype(auto) { return function(std::move(*taken.first)); };
    if constexpr (S + 1 == count) {
      for (; taken.first != taken.last; taken.drop()) work();
    } else if constexpr (in_place<S>()) {
      for (auto* token = taken.first; token != taken.last; ++token) {
        auto&& made = function(std::move(*token));
        if (&made != token) *token = std::move(made);
      }
      taken.release();
    } else {
      TokenRange made(tokens<S>(slot), 0);
      for (; taken.first != taken.last; taken.drop()) made.append(work);
      made.release();
    }
  }

  /// Returns true if stage S returns its own token as an rvalue, which then stays where it lies.
  template <std::size_t S>
  [[nodiscard]] static constexpr bool in_place() noexcept {
    if constexpr (S == 0 || S + 1 == count) {
      return false;
    } else {
      using Token = std::tuple_element_t<S - 1, Tokens>;
      using Function = std::tuple_element_t<S - 1, std::tuple<Functions&...>>;
      return std::is_same_v<std::invoke_result_t<Function, Token>, Token&&>;
    }
  }

  /// The block of stage S: what the stage makes.
  template <std::size_t S>
  [[nodiscard]] auto* tokens(std::byte* slot) const noexcept {
    return reinterpret_cast<std::tuple_element_t<S, Tokens>*>(slot + begin_of<S>());
  }

  template <std::size_t S>
  [[nodiscard]] std::size_t begin_of() const noexcept {
    if constexpr (S == 0) {
      return 0;
    } else if constexpr (in_place<S>()) {
      return begin_of<S - 1>();
    } else {
      const std::size_t end =
          begin_of<S - 1>() + m_batch * sizeof(std::tuple_element_t<S - 1, Tokens>);
      return (end + alignment - 1) / alignment * alignment;
    }
  }

  Source* m_source;
  std::tuple<Functions&...> m_functions;
  std::uint32_t m_batch;
};

}  // namespace impl
}  // namespace heddle::inline v0
