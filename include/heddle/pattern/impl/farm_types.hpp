// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The types of the items and results of a farm, from its source and work.

#include <span>
#include <type_traits>
#include <utility>

#include <heddle/pattern/farm_options.hpp>

namespace heddle::inline v0::impl {

/// Calls `work` with or without the task.
template <class Work, class Given>
auto farm_work(Work& work, const Given& item, const pattern::FarmTask& task) {
  if constexpr (std::is_invocable_v<Work&, const Given&, const pattern::FarmTask&>)
    return work(item, task);
  else
    return work(item);
}

/// The type of the results of a farm's work.
template <class Work, class Given>
using FarmResult = decltype(farm_work(std::declval<std::remove_reference_t<Work>&>(),
                                      std::declval<const Given&>(), pattern::FarmTask{}));

/// The items and results of a farm's types; both kinds of source fit.
template <class Source, class Work>
struct FarmTypes {
  using Given = typename std::invoke_result_t<Source&>::value_type;
  using Result = FarmResult<Work, Given>;
};
template <class Source, class Work>
requires(!std::is_invocable_v<Source&>) struct FarmTypes<Source, Work> {
  /// Converts to a span of any outcomes, so that the item's type can be asked for first.
  struct AnyOutcomes {
    template <class Outcome>
    operator std::span<const Outcome>() const;
  };
  using Given = typename std::invoke_result_t<Source&, AnyOutcomes>::value_type;
  using Result = FarmResult<Work, Given>;
};

}  // namespace heddle::inline v0::impl
