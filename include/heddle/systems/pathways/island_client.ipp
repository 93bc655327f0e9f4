// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of island_client.hpp.

#include <cstddef>
#include <cstdint>
#include <memory>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/systems/pathways/impl/gang_draft.hpp>
#include <heddle/systems/pathways/impl/gang_island.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>
#include <heddle/systems/pathways/island_client.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline ErrorInfo taken_value(const char* where) {
  return {where, "the tensor of this future was taken by get()", "",
          "keep the elements that get() returned"};
}

}  // namespace impl

HEDDLE_FULL_INLINE const impl::GangEntry& IslandClient::entry_of(const char* where,
                                                                 const impl::GangIsland* island,
                                                                 std::uint32_t number) const {
  expects(island == m_island, [&] {
    return ErrorInfo{where, "the function belongs to another island", "",
                     "use the functions that this island's add() and input() returned"};
  });
  return m_island->entry(number);
}

HEDDLE_FULL_INLINE void IslandClient::expect_mine(const char* where,
                                                  const impl::GangFuture* future) const {
  expects(future != nullptr, [&] {
    return ErrorInfo{where, "the future refers to nothing", "",
                     "use the result of call() or put()"};
  });
  expects(future->draft == m_draft, [&] {
    return ErrorInfo{where, "the future belongs to another client or another island", "",
                     "a tensor can be used only by the client that made it"};
  });
}

HEDDLE_FULL_INLINE std::uint64_t IslandClient::argument(const impl::GangEntry& entry,
                                                        std::size_t number,
                                                        const impl::GangFuture* future) const {
  constexpr const char* where = "heddle::systems::IslandClient::call";
  expect_mine(where, future);
  expects(!future->taken.load(), [&] { return impl::taken_value(where); });
  const Layout& wanted = entry.inputs[number];
  const Layout& has = future->layout;
  const bool open = entry.measure || !future->sized;  // the ranks compare the sizes
  const bool placed = !wanted.partial() || impl::with_sizes(has, wanted.sizes()) == wanted;
  expects(placed && (open || wanted.sizes() == has.sizes()), [&] {
    return ErrorInfo{where, text("argument ", number, " of '", entry.name, "' does not fit"),
                     text("it is ", has, ", expected ", wanted),
                     placed ? "the sizes must be equal" : "a tensor cannot become Partial"};
  });
  return future->id;
}

HEDDLE_FULL_INLINE std::shared_ptr<impl::GangValue> IslandClient::take(
    impl::GangFuture* future) const {
  constexpr const char* where = "heddle::systems::IslandClient::get";
  expect_mine(where, future);
  expects(!future->taken.exchange(true), [&] { return impl::taken_value(where); });
  std::shared_ptr<impl::GangValue> value = m_draft->get(future->id);
  if (!value->error.empty()) throw communication_error({where, value->error});
  return value;
}

}  // namespace heddle::inline v0::systems
