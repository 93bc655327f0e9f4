// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FarmPart: the source, the work and the sink of a farm, for the code that is compiled once for
/// all of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/execute/sendable.hpp>
#include <heddle/pattern/farm_options.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/farm_types.hpp>
#include <heddle/pattern/impl/type_words.hpp>

namespace heddle::inline v0::impl {

/// An item, in memory that later items use again.
struct AnyFarmItem {
  AnyFarmItem() = default;
  AnyFarmItem(const AnyFarmItem&) = delete;
  AnyFarmItem& operator=(const AnyFarmItem&) = delete;
  virtual ~AnyFarmItem() = default;
  /// Destroys the item.
  virtual void clear() = 0;
};

template <class Given>
struct FarmItem final : AnyFarmItem {
  void clear() override { value.reset(); }
  std::optional<Given> value;
};

/// An outcome, in memory that later outcomes use again. It refers to the members of its
/// FarmOutcome that have the same type for all results.
struct AnyFarmOutcome {
  AnyFarmOutcome(std::string& the_error, int& the_attempts)
      : error(the_error), attempts(the_attempts) {}
  AnyFarmOutcome(const AnyFarmOutcome&) = delete;
  AnyFarmOutcome& operator=(const AnyFarmOutcome&) = delete;
  virtual ~AnyFarmOutcome() = default;
  /// Destroys the result and the error.
  virtual void clear() = 0;
  std::string& error;
  int& attempts;
  bool succeeded = false;  ///< there is a result
};

template <class Result>
struct FarmOutcomeMemory final : AnyFarmOutcome {
  FarmOutcomeMemory() : AnyFarmOutcome(outcome.error, outcome.attempts) {}
  void clear() override {
    succeeded = false;
    outcome.value.reset();
    outcome.error.clear();
  }
  pattern::FarmOutcome<Result> outcome;
};

/// The properties of the types of a farm.
struct FarmFacts {
  bool sees_outcomes;     ///< the source is called with the outcomes
  bool items_have_sums;   ///< equal items have equal bytes, so that a journal can compare them
  bool results_sendable;  ///< results can be written as bytes
};

/// The source, the work and the sink of a farm, with the memory of its items and outcomes. Several
/// threads may call work() at once; the other functions are called by one at a time.
class FarmPart {
 public:
  explicit FarmPart(FarmFacts facts) : m_facts(facts) {}
  FarmPart(const FarmPart&) = delete;
  FarmPart& operator=(const FarmPart&) = delete;

  [[nodiscard]] const FarmFacts& facts() const noexcept { return m_facts; }
  [[nodiscard]] virtual std::unique_ptr<AnyFarmItem> new_item() const = 0;
  [[nodiscard]] virtual std::unique_ptr<AnyFarmOutcome> new_outcome() const = 0;

  /// Calls the source, which may see so many outcomes. Returns false if there are no more items.
  virtual bool take(AnyFarmItem& item, std::size_t seen) = 0;
  /// Calls the work, and sets the result of an empty outcome. Passes on what the work throws.
  virtual void work(const AnyFarmItem& item, const pattern::FarmTask& task,
                    AnyFarmOutcome& outcome) = 0;
  /// Calls the sink.
  virtual void give(std::int64_t number, AnyFarmOutcome& outcome) = 0;

  /// Appends an item to a message, or nothing if it is not Sendable.
  virtual void put_item(MessageBytes& message, const AnyFarmItem& item) const = 0;
  virtual void take_item(std::span<const std::byte>& message, AnyFarmItem& item) const = 0;
  virtual void put_result(MessageBytes& message, const AnyFarmOutcome& outcome) const = 0;
  virtual void take_result(std::span<const std::byte>& message, AnyFarmOutcome& outcome) const = 0;
  /// Returns the names of the types in journals.
  [[nodiscard]] virtual std::string item_words() const = 0;
  [[nodiscard]] virtual std::string result_words() const = 0;

 protected:
  ~FarmPart() = default;

 private:
  FarmFacts m_facts;
};

/// Returns the value of a type that a pointer stands for, see type_words().
template <class Value>
[[nodiscard]] const auto& behind_pointers(const Value& value) {
  if constexpr (std::is_pointer_v<Value>)
    return behind_pointers(*value);
  else
    return value;
}

/// The FarmPart of one source, work and sink.
template <class Source, class Work, class Sink>
class FarmPartOf final : public FarmPart {
  static constexpr bool sees_outcomes = !std::is_invocable_v<Source&>;

 public:
  using Given = typename FarmTypes<Source, Work>::Given;
  using Result = typename FarmTypes<Source, Work>::Result;
  static_assert(!std::is_void_v<Result>, "the work of heddle::pattern::farm() returns a result");

  FarmPartOf(Source& source, Work& work, Sink& sink)
      : FarmPart({sees_outcomes, is_sendable<Element> && is_without_padding<Element>,
                  is_sendable<Result>}),
        m_source(source),
        m_work(work),
        m_sink(sink) {}

  [[nodiscard]] std::unique_ptr<AnyFarmItem> new_item() const override {
    return std::make_unique<FarmItem<Given>>();
  }
  [[nodiscard]] std::unique_ptr<AnyFarmOutcome> new_outcome() const override {
    return std::make_unique<FarmOutcomeMemory<Result>>();
  }

  bool take(AnyFarmItem& item, std::size_t seen) override {
    std::optional<Given> given = call_source(seen);
    if (given) value_of(item).emplace(std::move(*given));
    return given.has_value();
  }
  void work(const AnyFarmItem& item, const pattern::FarmTask& task,
            AnyFarmOutcome& outcome) override {
    outcome_of(outcome).value.emplace(farm_work(m_work, *value_of(item), task));
  }
  void give(std::int64_t number, AnyFarmOutcome& outcome) override {
    if constexpr (sees_outcomes) m_history.push_back(outcome_of(outcome));
    m_sink(number, std::move(outcome_of(outcome)));
  }

  void put_item(MessageBytes& message, const AnyFarmItem& item) const override {
    if constexpr (is_sendable<Element>) pack(message, behind_pointers(*value_of(item)));
  }
  void take_item(std::span<const std::byte>& message, AnyFarmItem& item) const override {
    if constexpr (is_sendable<Given>) value_of(item).emplace(unpack<Given>(message));
  }
  void put_result(MessageBytes& message, const AnyFarmOutcome& outcome) const override {
    if constexpr (is_sendable<Result>) pack(message, *outcome_of(outcome).value);
  }
  void take_result(std::span<const std::byte>& message, AnyFarmOutcome& outcome) const override {
    if constexpr (is_sendable<Result>) outcome_of(outcome).value.emplace(unpack<Result>(message));
  }
  [[nodiscard]] std::string item_words() const override { return type_words<Given>(); }
  [[nodiscard]] std::string result_words() const override { return type_words<Result>(); }

 private:
  std::optional<Given> call_source([[maybe_unused]] std::size_t seen) {
    if constexpr (sees_outcomes)
      return m_source(std::span<const pattern::FarmOutcome<Result>>(m_history.data(), seen));
    else
      return m_source();
  }

  using Element = std::remove_cvref_t<decltype(behind_pointers(std::declval<const Given&>()))>;

  static std::optional<Given>& value_of(AnyFarmItem& item) {
    return static_cast<FarmItem<Given>&>(item).value;
  }
  static const std::optional<Given>& value_of(const AnyFarmItem& item) {
    return static_cast<const FarmItem<Given>&>(item).value;
  }
  static pattern::FarmOutcome<Result>& outcome_of(AnyFarmOutcome& outcome) {
    return static_cast<FarmOutcomeMemory<Result>&>(outcome).outcome;
  }
  static const pattern::FarmOutcome<Result>& outcome_of(const AnyFarmOutcome& outcome) {
    return static_cast<const FarmOutcomeMemory<Result>&>(outcome).outcome;
  }

  Source& m_source;
  Work& m_work;
  Sink& m_sink;
  std::vector<pattern::FarmOutcome<Result>> m_history;  ///< if the source sees outcomes
};

}  // namespace heddle::inline v0::impl
