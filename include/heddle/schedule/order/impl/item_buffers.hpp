// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ItemBuffers: adds the buffers of the stages for weave(), and finds the parts that hold some
/// samples of a microbatch.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>
#include <heddle/schedule/order/impl/woven_stages.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/order/stage_shares.hpp>

namespace heddle::inline v0::impl {

/// The buffers of one weave() call. Without shares, a buffer of values has one part for each
/// microbatch. Shares cut every microbatch at the same samples, and the part of microbatch m and
/// granule g is m * (granules of a microbatch) + g.
class ItemBuffers {
 public:
  ItemBuffers(Builder& builder, const DividedOrders& divided, Scalar type, std::size_t items)
      : m_builder(builder),
        m_divided(divided),
        m_type(type),
        m_items(static_cast<std::uint32_t>(items)) {}

  /// Adds a buffer of parameters: one part for each version.
  BufferId add_parameters(const char* name, const WovenStage& place, std::uint32_t versions,
                          Bytes each, bool transient = true) {
    Buffer buffer = on(name, place);
    buffer.parts = versions;
    buffer.bytes = each * versions;
    buffer.transient = transient;
    return m_builder.add_buffer(buffer);
  }

  /// Adds a buffer for a value of every microbatch. A whole microbatch has `each` bytes of it.
  /// `cuts` are the samples at which granules begin and end.
  BufferId add(const char* name, const WovenStage& place, Bytes each,
               std::vector<std::int64_t> cuts) {
    Buffer buffer = on(name, place);
    buffer.parts = m_items;
    buffer.bytes = each * m_items;
    if (!m_divided.divides()) return m_builder.add_buffer(buffer);
    std::vector<Bytes> sizes;
    for (std::size_t i = 1; i < cuts.size(); ++i)
      sizes.push_back(bytes_of(name, place, each, cuts[i] - cuts[i - 1]));
    const std::size_t granules = sizes.size();
    sizes.resize(m_items * granules);
    for (std::size_t i = granules; i < sizes.size(); ++i) sizes[i] = sizes[i - granules];
    cut_in_parts(buffer, std::move(sizes), each != 0);
    std::vector<std::int64_t> samples;
    for (std::size_t i = 1; i < cuts.size(); ++i) samples.push_back(cuts[i] - cuts[i - 1]);
    buffer.granules = std::make_shared<const std::vector<std::int64_t>>(std::move(samples));
    const BufferId id = m_builder.add_buffer(buffer);
    m_cuts.resize(+id + 1);
    m_cuts[+id] = std::move(cuts);
    return id;
  }

  /// Returns the Use of some samples of a microbatch, which begin and end at cuts.
  [[nodiscard]] Use part(Access access, BufferId id, Item item, SampleRange samples) const {
    if (!m_divided.divides()) return schedule::use(access, id, item.value);
    const std::vector<std::int64_t>& cuts = m_cuts[+id];
    const auto number_of = [&](std::int64_t cut) {
      return static_cast<std::uint32_t>(std::ranges::lower_bound(cuts, cut) - cuts.begin());
    };
    const std::uint32_t first = number_of(samples.begin);
    const auto granules = static_cast<std::uint32_t>(cuts.size() - 1);
    return schedule::use(access, id, item.value * granules + first, number_of(samples.end) - first);
  }

  /// Returns the Use of the samples of a microbatch that `place` computes.
  [[nodiscard]] Use own(Access access, BufferId id, const WovenStage& place, Item item) const {
    return part(access, id, item, m_divided.samples(place.stage, item));
  }

 private:
  [[nodiscard]] Buffer on(const char* name, const WovenStage& place) {
    return {.rank = place.rank,
            .stage = m_divided.stage_of(place.stage),
            .label = m_builder.label(name),
            .type = m_type};
  }

  [[nodiscard]] Bytes bytes_of(const char* name, const WovenStage& place, Bytes each,
                               std::int64_t samples) const {
    const auto all = static_cast<Bytes>(m_divided.samples_of_microbatch());
    const Bytes bytes = each * static_cast<Bytes>(samples);
    expects(bytes % (all * size_of(m_type)) == 0, [&] {
      return ErrorInfo{
          text("heddle::weave(", m_divided.orders().name, ")"),
          "a microbatch does not have whole elements for every sample",
          text("'", name, "' of stage ", m_divided.stage_of(place.stage), " has ", each,
               " bytes of type ", m_type, " for ", all, " samples, and a part has ", samples),
          "give StageSizes in bytes of a microbatch, divisible by its samples"};
    });
    return bytes / all;
  }

  Builder& m_builder;
  const DividedOrders& m_divided;
  Scalar m_type;
  std::uint32_t m_items;
  std::vector<std::vector<std::int64_t>> m_cuts;  ///< by buffer
};

}  // namespace heddle::inline v0::impl
