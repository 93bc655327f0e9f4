// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// IslandClient: composes programs of an Island from calls of functions on distributed tensors.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/systems/pathways/future.hpp>
#include <heddle/systems/pathways/impl/gang_draft.hpp>
#include <heddle/systems/pathways/impl/gang_island.hpp>
#include <heddle/systems/pathways/impl/gang_value.hpp>

namespace heddle::inline v0::systems {

/// A function of an Island, as Island::add() returns it: `GangFunction<Result(Arguments...)>`. All
/// of them are types of tensors. It can be copied, and is valid for its island only.
template <class Signature>
class GangFunction;
/// See above.
template <class Result, class... Arguments>
class GangFunction<Result(Arguments...)> {
  friend class Island;
  friend class IslandClient;
  GangFunction(const impl::GangIsland* island, std::uint32_t number)
      : m_island(island), m_number(number) {}
  const impl::GangIsland* m_island;
  std::uint32_t m_number;
};

/// A client of an Island, which calls functions. Its programs run in the order in which it makes
/// them. Within one client, several threads may use it.
///
/// Calls are collected, and return before anything has run. start() or get() submits the calls so
/// far as one program, as do 48 calls without either. Every rank gets one message for a program.
class IslandClient {
 public:
  /// Gives the island a tensor: `all` has all elements, and is copied. `input` says how the ranks
  /// divide them, see Island::input().
  /// @throws contract_error if `all` has other sizes or gaps, or if `input` is of another island.
  template <class Tensor>
  [[nodiscard]] Future<Tensor> put(const GangFunction<Tensor()>& input,
                                   const typename Tensor::View& all) const {
    const impl::GangEntry& entry =
        entry_of("heddle::systems::IslandClient::put", input.m_island, input.m_number);
    const Layout here = impl::on_one_rank(entry.output.sizes(), m_island->comm().rank());
    const Tensor given(m_island->comm(), here, all);
    auto copy = std::make_shared<Tensor>(m_island->comm(), here);
    std::copy_n(given.view().data(), given.view().size(), copy->view().data());
    const std::uint64_t id = m_draft->add(input.m_number, {}, copy);
    return Future<Tensor>(std::make_shared<impl::GangFuture>(m_draft, id, entry.output, true));
  }

  /// Calls `function` on the tensors to which the futures refer. If a tensor has another layout
  /// than the function expects, its elements change ranks before the call. If its sizes are known
  /// only while the island runs, and the function expects others, the result has an error.
  /// @throws contract_error if the function or a future is of another island or client, if a future
  ///         refers to nothing or was taken by get(), or if a tensor has other sizes than the
  ///         function expects.
  template <class Result, class... Arguments>
  Future<Result> call(const GangFunction<Result(Arguments...)>& function,
                      const Future<Arguments>&... arguments) const {
    const impl::GangEntry& entry =
        entry_of("heddle::systems::IslandClient::call", function.m_island, function.m_number);
    std::vector<std::uint64_t> ids;
    (ids.push_back(argument(entry, ids.size(), arguments.m_state.get())), ...);
    return Future<Result>(std::make_shared<impl::GangFuture>(
        m_draft, m_draft->add(function.m_number, ids), entry.output, !entry.measure));
  }

  /// Submits the calls so far as a program, and returns at once.
  void start() const { m_draft->start(); }

  /// Submits the calls so far, waits for the tensor of `future` and returns all its elements, in
  /// the memory of this process. The ranks release the tensor.
  /// @throws contract_error if the future is of another island or client, refers to nothing, or was
  ///         taken before.
  /// @throws communication_error with the error of the function that failed, or if the island
  ///         fails.
  template <class Tensor>
  [[nodiscard]] typename Tensor::View get(const Future<Tensor>& future) const {
    const std::shared_ptr<impl::GangValue> value = take(future.m_state.get());
    return static_cast<const Tensor*>(value->tensor.get())->view();
  }

 private:
  friend class Island;
  IslandClient(const impl::GangIsland& island, std::shared_ptr<impl::GangDraft> draft)
      : m_island(&island), m_draft(std::move(draft)) {}

  /// Returns function `number` of `island`. @throws contract_error if it is another island.
  [[nodiscard]] const impl::GangEntry& entry_of(const char* where, const impl::GangIsland* island,
                                                std::uint32_t number) const;
  /// Checks an argument of a call. Returns the number of its value. @throws contract_error.
  [[nodiscard]] std::uint64_t argument(const impl::GangEntry& entry, std::size_t number,
                                       const impl::GangFuture* future) const;
  /// Takes a value. Throws as get().
  [[nodiscard]] std::shared_ptr<impl::GangValue> take(impl::GangFuture* future) const;
  void expect_mine(const char* where, const impl::GangFuture* future) const;

  const impl::GangIsland* m_island;
  std::shared_ptr<impl::GangDraft> m_draft;
};

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_FULL_SYSTEMS
#include <heddle/systems/pathways/island_client.ipp>
#endif
