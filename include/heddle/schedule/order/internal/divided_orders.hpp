// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DividedOrders: writes Orders with StageShares as Orders in which every share is a stage of its
/// own, on one rank. Code that knows only such stages then reads any Orders.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/stage_shares.hpp>

namespace heddle::inline v0::impl {

/// Throws contract_error in the name of `where` if the orders have shares.
void refuse_shares(const Orders& orders, const char* where);

/// Orders whose stages are shares of stages. Two shares are connected if they have samples in
/// common in any microbatch. Without StageShares, these are the given orders, to which the object
/// refers.
class DividedOrders {
 public:
  /// @throws contract_error if the shares are wrong (see StageShares::check()), or if they do not
  ///         fit the stages, ranks and microbatches of the orders.
  explicit DividedOrders(const Orders& orders);

  /// A connection of two shares. It stands for a part of an edge between their stages.
  struct Link {
    std::uint32_t edge;        ///< the number of the edge in the graph of the orders
    bool first_in, first_out;  ///< the first link of the edge at its end, and at its begin
    bool alone_in, alone_out;  ///< the only link of the edge there
  };

  /// Returns true if the orders have shares.
  [[nodiscard]] bool divides() const noexcept { return m_divided.has_value(); }
  /// Returns the orders whose stages are shares.
  [[nodiscard]] const Orders& orders() const noexcept { return m_divided ? *m_divided : m_given; }
  /// Returns the number of stages that the shares belong to.
  [[nodiscard]] std::size_t stages() const noexcept { return m_given.shares.stages.size(); }
  /// Returns the samples of the largest microbatch.
  [[nodiscard]] std::int64_t samples_of_microbatch() const noexcept {
    return m_given.shares.samples;
  }
  /// Returns the stage of a share.
  [[nodiscard]] Stage stage_of(Stage share) const {
    return divides() ? m_shares[+share].stage : share;
  }
  /// Returns the samples of a microbatch that a share computes.
  [[nodiscard]] SampleRange samples(Stage share, Item item) const {
    return divides() ? range(m_shares[+share], m_given.shares.samples_of(item)) : SampleRange{};
  }
  /// Returns the link of edge `number` of the graph of shares.
  [[nodiscard]] Link link(std::uint32_t number) const {
    return divides() ? m_links[number] : Link{number, true, true, true, true};
  }

  /// Returns the samples at which the parts of a buffer begin and end: those of a share that keeps
  /// its values to itself. Empty without shares.
  [[nodiscard]] std::vector<std::int64_t> cuts(Stage share) const;
  /// Returns the same for a buffer of values that the share sends or receives along these links.
  [[nodiscard]] std::vector<std::int64_t> cuts(Stage share,
                                               const std::vector<std::uint32_t>& links) const;

  /// Returns the text of an entry of orders(), as the given orders have it.
  [[nodiscard]] std::string describe(const Order& order) const;

 private:
  struct Share {
    Stage stage;
    std::size_t number;  ///< among the shares of the stage
    Rank rank;
  };

  void find_shares();
  void connect_shares();
  void add_boundaries(Stage stage, std::vector<std::int64_t>& boundaries) const;
  [[nodiscard]] SampleRange range(const Share& share, std::int64_t size) const {
    return m_given.shares.range(share.stage, share.number, size);
  }

  const Orders& m_given;
  std::optional<Orders> m_divided;
  std::vector<Share> m_shares;
  std::vector<std::size_t> m_first;  ///< by stage: its first share
  StageGraph m_graph;                ///< the graph of the given orders
  std::vector<Link> m_links;
  std::vector<std::int64_t> m_sizes;  ///< the different sizes of microbatches
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/internal/divided_orders.ipp>
#endif
