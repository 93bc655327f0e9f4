// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// walk_experts(): takes tokens through the experts of a mixture-of-experts model that is divided
/// over ranks. Tokens come home after each expert, or stay where their expert is.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/systems/exflow/expert_placement.hpp>

namespace heddle::inline v0::systems {

/// The messages of a rank in walk_experts().
struct ExpertTraffic {
  int exchanges = 0;  ///< number of all_to_all() calls
  int gathers = 0;    ///< number of all_gather() calls
  Bytes rows = 0;     ///< bytes of rows of tokens that it sent to other ranks
  Bytes numbers = 0;  ///< bytes of token numbers that it sent beside the rows
};

/// The way of a token after an expert.
enum class AfterExpert : std::uint8_t {
  comes_home,  ///< back to its home rank: two exchanges in every layer
  stays        ///< nowhere: one exchange before every layer but the first, one gather at the end
};

/// The options of walk_experts().
struct ExpertWalkOptions {
  std::size_t width = 1;                   ///< numbers in the row of a token
  AfterExpert after = AfterExpert::stays;  ///< the way of tokens after an expert
  ExecuteOptions wait = {};                ///< how a rank waits for the others
};

namespace impl {

/// The tokens that a rank has, and their exchange.
template <Transport X, class T>
class ExpertWalk {
 public:
  using Rows = std::vector<std::pair<std::uint64_t, std::vector<T>>>;  ///< numbers and rows

  ExpertWalk(X& transport, const ExpertWalkOptions& options)
      : m_transport(transport), m_options(options) {}

  /// Sends the tokens of `rows` for which `rank_of(token, row)` is another rank there.
  template <class RankOf>
  void exchange(Rows& rows, RankOf&& rank_of) {
    const std::size_t each = m_options.width * sizeof(T);
    std::vector<std::vector<std::byte>> blocks(static_cast<std::size_t>(m_transport.size()));
    Rows here;
    for (auto& [token, row] : rows) {
      const Rank to = rank_of(token, row);
      if (to == m_transport.rank()) {
        here.emplace_back(token, std::move(row));
        continue;
      }
      append(blocks[+to], token, row);
      m_traffic.rows += each;
      m_traffic.numbers += sizeof(std::uint64_t);
    }
    ++m_traffic.exchanges;
    const auto arrived = all_to_all(m_transport, blocks, m_options.wait);
    rows = std::move(here);
    for (const auto& block : arrived) take(block, rows);
  }

  /// Returns the tokens of all ranks.
  [[nodiscard]] Rows gather(const Rows& rows) {
    const auto others = static_cast<Bytes>(m_transport.size() - 1);
    std::vector<std::byte> mine;
    for (const auto& [token, row] : rows) append(mine, token, row);
    m_traffic.rows += others * rows.size() * m_options.width * sizeof(T);
    m_traffic.numbers += others * rows.size() * sizeof(std::uint64_t);
    ++m_traffic.gathers;
    Rows all;
    for (const auto& block : heddle::all_gather(m_transport, mine, m_options.wait))
      take(block, all);
    return all;
  }

  [[nodiscard]] const ExpertTraffic& traffic() const noexcept { return m_traffic; }

 private:
  static void append(std::vector<std::byte>& block, std::uint64_t token,
                     const std::vector<T>& row) {
    const auto put = [&](std::span<const std::byte> bytes) {
      block.insert(block.end(), bytes.begin(), bytes.end());
    };
    put(std::as_bytes(std::span(&token, 1)));
    put(std::as_bytes(std::span(row)));
  }
  void take(std::span<const std::byte> block, Rows& rows) const {
    const std::size_t each = m_options.width * sizeof(T);
    for (; !block.empty(); block = block.subspan(sizeof(std::uint64_t) + each)) {
      auto& [token, row] = rows.emplace_back(0, std::vector<T>(m_options.width));
      std::memcpy(&token, block.data(), sizeof(token));
      std::memcpy(row.data(), block.data() + sizeof(token), each);
    }
  }

  X& m_transport;
  const ExpertWalkOptions& m_options;
  ExpertTraffic m_traffic;
};

}  // namespace impl

/// Takes every token through one expert of each layer, on the rank where `placement` has the
/// expert. `rows` has the rows of all tokens on every rank, `width` numbers each: the prompt, or
/// the result of the last gather. `route(token, layer, row)` returns the expert of a token.
/// `expert(layer, expert, token, row)` changes the row, and may read any context that all ranks
/// have, because a token may be on any rank. Both are called for one token after another. Token t
/// of N is at home on rank t P / N.
///
/// - With AfterExpert::comes_home a token goes to its expert and back in every layer. Afterwards a
///   rank has the new rows of the tokens that are at home on it; its other rows are unchanged. A
///   token sends 2 L (1 - 1/P) rows if its experts are equally often on each rank.
/// - With AfterExpert::stays a token starts where its first expert is and goes from expert to
///   expert; this is the context coherence of ExFlow (Yao et al., IPDPS 2024). One gather at the
///   end leaves all new rows on all ranks. If a share f of the steps between layers changes the
///   rank, a token sends (L - 1) f + P - 1 rows. systems::place_experts() finds a placement with a
///   low f.
///
/// Both compute the same rows, bit by bit. Returns the traffic of this rank. All ranks must call it
/// with the same arguments.
/// @throws contract_error if the placement is invalid or for another number of ranks, if the rows
///         are not a whole number of tokens, or if a route names an expert that does not exist;
///         what the callables throw. After such an error the other ranks throw
///         communication_error.
template <Transport X, class T, class Route, class Expert>
requires std::is_trivially_copyable_v<T> &&
    std::is_invocable_r_v<std::size_t, Route&, std::uint64_t, std::size_t, std::span<const T>> &&
    std::invocable<Expert&, std::size_t, std::size_t, std::uint64_t, std::span<T>>
        ExpertTraffic walk_experts(X& transport, const ExpertPlacement& placement,
                                   std::span<T> rows, const ExpertWalkOptions& options,
                                   Route&& route, Expert&& expert) {
  constexpr const char* where = "heddle::systems::walk_experts";
  const std::size_t width = options.width;
  abort_on_error(transport, where, [&] {
    placement.expect_valid(where);
    expects(placement.ranks == transport.size() && width >= 1 && rows.size() % width == 0, [&] {
      return ErrorInfo{where, "the placement or the rows do not fit",
                       text("a placement for ", placement.ranks, " ranks, ", transport.size(),
                            " ranks, ", rows.size(), " numbers in rows of ", width)};
    });
    heddle::impl::expect_valid(options.wait, where);
  });
  const std::uint64_t tokens = rows.size() / width;
  const auto ranks = static_cast<std::uint64_t>(transport.size());
  const auto home = [&](std::uint64_t token) {
    return Rank{static_cast<std::size_t>(token * ranks / tokens)};
  };
  const auto row_of = [&](std::uint64_t token) {
    return rows.subspan(static_cast<std::size_t>(token) * width, width);
  };
  impl::ExpertWalk<X, T> walk(transport, options);
  typename impl::ExpertWalk<X, T>::Rows here;
  const auto rank_in = [&](std::size_t layer) {
    return [&, layer](std::uint64_t token, std::span<const T> row) {
      const auto chosen = static_cast<std::size_t>(route(token, layer, row));
      expects(chosen < placement.experts, [&] {
        return ErrorInfo{where, "a route names an expert that does not exist",
                         text("token ", token, ", layer ", layer, ": expert ", chosen, " of ",
                              placement.experts)};
      });
      return placement.rank(layer, chosen);
    };
  };
  try {
    const bool stays = options.after == AfterExpert::stays;
    for (std::uint64_t t = 0; t < tokens; ++t) {
      const std::span<const T> row = row_of(t);
      if ((stays && placement.layers > 0 ? rank_in(0)(t, row) : home(t)) == transport.rank())
        here.emplace_back(t, std::vector<T>(row.begin(), row.end()));
    }
    for (std::size_t layer = 0; layer < placement.layers; ++layer) {
      if (layer > 0 || !stays) walk.exchange(here, rank_in(layer));
      for (auto& [token, row] : here)
        expert(layer, static_cast<std::size_t>(route(token, layer, std::span<const T>(row))), token,
               std::span<T>(row));
      if (!stays)
        walk.exchange(here, [&](std::uint64_t token, std::span<const T>) { return home(token); });
    }
    if (stays) here = walk.gather(here);
  } catch (const std::exception& error) {
    if (!transport.aborted()) transport.abort({transport.rank(), where, error.what()});
    throw;
  }
  for (const auto& [token, row] : here)
    std::memcpy(row_of(token).data(), row.data(), width * sizeof(T));
  return walk.traffic();
}

}  // namespace heddle::inline v0::systems
