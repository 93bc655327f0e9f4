// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of bank_gemv.hpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/systems/pim_gpt/bank_gemv.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// The products of bank_gemv(), in the order in which they are appended.
class BankGemvBuilder {
 public:
  BankGemvBuilder(const DramGrid& grid, std::size_t products, Bytes result)
      : m_grid(grid),
        m_result(result),
        m_builder(heddle::text(products, " products in ", grid.all_banks(), " banks"),
                  1 + grid.channels) {}

  /// Appends a product, whose sum has `next` bytes.
  void add(std::size_t number, const Gemv& product, Bytes next) {
    const std::vector<BankWork> work = bank_work(m_grid, product);
    const Stage stage{number};
    const Bytes bytes = product.vector_bytes();
    if (!m_vector) {
      Buffer given = buffer(Rank{0}, bytes, "vector");
      given.transient = false;
      m_vector = m_builder.add_buffer(given);
    }
    std::vector<BufferId> sums;
    std::int64_t results = 0;
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(m_grid.channels); ++channel) {
      const Rank rank{channel + 1};
      std::optional<BufferId> vector;
      const std::size_t first = channel * static_cast<std::size_t>(m_grid.banks);
      for (std::size_t lane = 0; lane < static_cast<std::size_t>(m_grid.banks); ++lane) {
        const BankWork& own = work[first + lane];
        if (own.bursts == 0) continue;
        if (!vector) {
          vector = m_builder.add_buffer(buffer(rank, bytes, "vector"));
          move(stage, m_builder.queue(Rank{0}, rank), *m_vector, *vector);
        }
        const BufferId sum =
            m_builder.add_buffer(buffer(rank, static_cast<Bytes>(own.results) * m_result, "sums"));
        m_builder.add({.queue = m_builder.local(rank, Lane{lane}),
                       .stage = stage,
                       .item = Item{first + lane}},
                      {schedule::read(*vector), schedule::write(sum)});
        sums.push_back(sum);
        results += own.results;
      }
    }
    std::vector<Use> uses;
    for (const BufferId sum : sums) {
      const Buffer& there = m_builder[sum];
      const Rank rank = there.rank;
      const BufferId here = m_builder.add_buffer(buffer(Rank{0}, there.bytes, "sums"));
      move(stage, m_builder.queue(rank, Rank{0}), sum, here);
      uses.push_back(schedule::read(here));
    }
    m_vector = m_builder.add_buffer(buffer(Rank{0}, next, "vector"));
    uses.push_back(schedule::write(*m_vector));
    m_builder.add({.queue = m_builder.local(Rank{0}),
                   .stage = stage,
                   .item = Item{static_cast<std::size_t>(results)}},
                  uses);
  }

  [[nodiscard]] Schedule build() && { return std::move(m_builder).build(); }

 private:
  [[nodiscard]] Buffer buffer(Rank rank, Bytes bytes, const char* label) {
    Buffer made;
    made.rank = rank;
    made.bytes = bytes;
    made.label = m_builder.label(label);
    return made;
  }
  void move(Stage stage, QueueId queue, BufferId from, BufferId to) {
    m_builder.add({.kind = Kind::move, .queue = queue, .stage = stage},
                  {schedule::read(from), schedule::write(to)});
  }

  DramGrid m_grid;
  Bytes m_result;
  Builder m_builder;
  std::optional<BufferId> m_vector;  ///< on the controller
};

}  // namespace impl

HEDDLE_INLINE Schedule bank_gemv(const DramGrid& grid, std::span<const Gemv> products,
                                 Bytes result) {
  expects(!products.empty(), [&] {
    return ErrorInfo{"heddle::systems::bank_gemv", "there are no products", "products is empty"};
  });
  expects(result >= 1 && result <= Bytes{1} << 16, [&] {
    return ErrorInfo{"heddle::systems::bank_gemv", "a partial sum has from 1 to 2^16 bytes",
                     heddle::text("result = ", result)};
  });
  for (const Gemv& product : products) check(grid, product);
  impl::BankGemvBuilder builder(grid, products.size(), result);
  for (std::size_t p = 0; p < products.size(); ++p)
    builder.add(p, products[p],
                p + 1 < products.size()
                    ? products[p + 1].vector_bytes()
                    : static_cast<Bytes>(products[p].outputs) * products[p].element);
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::systems
