// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of collective.hpp.

#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

[[nodiscard]] inline CollectiveForm form_of(Collective collective, Algorithm algorithm,
                                            const CollectiveOptions& options) {
  return {collective, algorithm, options.chunks, options.root, options.levels, options.apart};
}

}  // namespace impl

HEDDLE_INLINE std::string why_not(Collective collective, Algorithm algorithm,
                                  const CollectiveOptions& options) {
  if (options.ranks < 1) return text("there must be at least one rank, got ", options.ranks);
  return impl::form_of(collective, algorithm, options)
      .why_not(static_cast<std::uint32_t>(options.ranks));
}

namespace impl {

/// Divides bytes into blocks, and blocks into parts.
class BlockCut {
 public:
  explicit BlockCut(const CollectiveOptions& options)
      : m_element(options.element == 0 ? size_of(options.type) : options.element) {
    expects(m_element % size_of(options.type) == 0, [&] {
      return ErrorInfo{where, "options.element must be whole elements of the type",
                       text(m_element, " bytes, elements of ", size_of(options.type))};
    });
  }

  /// Divides `bytes` into `count` blocks of whole elements. The first blocks have one more.
  [[nodiscard]] std::vector<Bytes> evenly(Bytes bytes, std::size_t count) const {
    expects(bytes % m_element == 0, [&] {
      return ErrorInfo{where, "the bytes are not whole elements",
                       text(bytes, " bytes, elements of ", m_element)};
    });
    const Bytes elements = bytes / m_element;
    std::vector<Bytes> blocks;
    for (std::size_t b = 0; b < count; ++b)
      blocks.push_back(heddle::impl::even_count(elements, count, b) * m_element);
    return blocks;
  }

  /// Cuts `buffer` into these blocks, and each block into `each` parts.
  void size(Buffer& buffer, std::span<const Bytes> blocks, std::uint32_t each) const {
    std::vector<Bytes> parts;
    for (const Bytes block : blocks)
      for (const Bytes part : evenly(block, each)) parts.push_back(part);
    heddle::impl::cut_in_parts(buffer, std::move(parts));
  }

  static constexpr const char* where = "heddle::schedule::collective";

 private:
  Bytes m_element;
};

}  // namespace impl

HEDDLE_INLINE Schedule collective(Collective collective, Algorithm algorithm,
                                  const CollectiveOptions& options) {
  const CollectiveForm form = impl::form_of(collective, algorithm, options);
  Builder builder(text(algorithm, ' ', collective, " P=", options.ranks, " C=", options.chunks),
                  options.ranks);
  form.expect_possible(static_cast<std::uint32_t>(options.ranks));
  const auto p = static_cast<std::size_t>(options.ranks);
  const bool pairs = collective == Collective::all_to_all;
  const impl::BlockCut cut(options);
  const std::size_t wanted = pairs ? p * p : p;
  expects(options.blocks.empty() || options.blocks.size() == wanted, [&] {
    return ErrorInfo{impl::BlockCut::where, "CollectiveOptions::blocks has the wrong length",
                     text("expected ", wanted, " blocks, got ", options.blocks.size())};
  });
  std::vector<Bytes> blocks = options.blocks;
  if (blocks.empty()) blocks = cut.evenly(options.bytes, p);
  if (pairs && options.blocks.empty())
    for (std::size_t i = p; i < wanted; ++i) blocks.push_back(blocks[i - p]);

  std::vector<Use> members;
  const auto add = [&](std::size_t rank, const char* label, std::span<const Bytes> sizes,
                       std::uint32_t each) {
    Buffer buffer{.rank = Rank{rank},
                  .parts = each,
                  .label = builder.label(label),
                  .type = options.type,
                  .transient = false};
    if (collective != Collective::barrier) cut.size(buffer, sizes, each);
    const std::uint32_t parts = buffer.parts;
    members.push_back(update(builder.add_buffer(buffer), 0, parts));
  };
  const auto whole = std::span<const Bytes>(blocks);
  const std::uint32_t parts = form.parts(form.members(p));
  if (pairs) {
    for (std::size_t r = 0; r < p; ++r) add(r, "input", whole.subspan(r * p, p), parts);
    std::vector<Bytes> column(p);
    for (std::size_t r = 0; r < p; ++r) {
      for (std::size_t q = 0; q < p; ++q) column[q] = blocks[q * p + r];
      add(r, "output", column, parts);
    }
  } else if (collective == Collective::gather) {
    for (std::size_t r = 0; r < p; ++r) add(r, "input", whole.subspan(r, 1), parts);
    add(+options.root, "output", whole, parts);
  } else if (collective == Collective::scatter) {
    add(+options.root, "input", whole, parts);
    for (std::size_t r = 0; r < p; ++r) add(r, "output", whole.subspan(r, 1), parts);
  } else {
    const bool by_rank =
        collective == Collective::reduce_scatter || collective == Collective::all_gather;
    const auto each = by_rank ? parts / static_cast<std::uint32_t>(p) : parts;
    const Bytes sum = std::accumulate(blocks.begin(), blocks.end(), Bytes{0});
    const auto sizes = by_rank ? whole : std::span(&sum, 1);
    const bool apart = collective == Collective::all_gather && options.apart;
    for (std::size_t r = 0; apart && r < p; ++r) add(r, "input", whole.subspan(r, 1), each);
    for (std::size_t r = 0; r < p; ++r) add(r, apart ? "output" : "data", sizes, each);
  }
  form(builder, members, Stage{0});
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
