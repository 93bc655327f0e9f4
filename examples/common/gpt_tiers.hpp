// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The memory tiers of a generation as a command line states them, and the file in which the
/// weights of all blocks lie. It needs neither Kokkos nor MPI.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/tier/store_writer.hpp>

#include "gpt_config.hpp"
#include "gpt_weights.hpp"

namespace examples {

/// The tiers of "memory 8MB, file weights.tier 200MB/s".
struct GptTiers {
  heddle::Bytes memory = 0;  ///< the bytes for the weights of blocks in memory; 0: unknown
  std::string file = {};     ///< the file that has the weights of all blocks
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per second of the file
};

namespace impl {

[[noreturn]] inline void fail_tiers(std::string what, std::string_view piece) {
  throw heddle::contract_error({"tiers", std::move(what), heddle::text("'", piece, "'"),
                                "write \"memory 8MB, file weights.tier 200MB/s\""});
}

/// Reads a positive number with a unit, such as 8MB, 1.5GB or 64KiB.
[[nodiscard]] inline double read_amount(std::string_view piece) {
  double value = 0;
  const auto [rest, error] = std::from_chars(piece.data(), piece.data() + piece.size(), value);
  if (error != std::errc{} || !(value > 0)) fail_tiers("not a positive number of bytes", piece);
  const std::string_view unit = piece.substr(static_cast<std::size_t>(rest - piece.data()));
  const struct {
    std::string_view name;
    double bytes;
  } units[] = {{"B", 1},    {"kB", 1e3},   {"KB", 1e3},          {"MB", 1e6},
               {"GB", 1e9}, {"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024. * 1024 * 1024}};
  for (const auto& each : units)
    if (unit == each.name) return value * each.bytes;
  fail_tiers("no unit of bytes", piece);
}

/// Cuts `text` at `separator`, without spaces around the pieces.
[[nodiscard]] inline std::vector<std::string_view> pieces_of(std::string_view text,
                                                             char separator) {
  std::vector<std::string_view> pieces;
  for (bool more = true; more;) {
    std::string_view piece = text.substr(0, text.find(separator));
    more = piece.size() < text.size();
    text.remove_prefix(piece.size() + more);
    while (piece.starts_with(' ')) piece.remove_prefix(1);
    while (piece.ends_with(' ')) piece.remove_suffix(1);
    if (!piece.empty()) pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace impl

/// Reads the tiers: `memory BYTES`, which may be left out, and `file NAME`, with `BYTES/s` behind
/// it to emulate a slow one. @throws contract_error that names the piece that is not understood.
[[nodiscard]] inline GptTiers read_tiers(std::string_view description) {
  GptTiers tiers;
  for (const std::string_view tier : impl::pieces_of(description, ',')) {
    const auto words = impl::pieces_of(tier, ' ');
    if (words.front() == "memory" && words.size() == 2) {
      tiers.memory = static_cast<heddle::Bytes>(impl::read_amount(words[1]));
    } else if (words.front() == "file" && (words.size() == 2 || words.size() == 3)) {
      tiers.file = words[1];
      if (words.size() == 2) continue;
      if (!words[2].ends_with("/s")) impl::fail_tiers("the rate does not end with '/s'", words[2]);
      tiers.bandwidth = impl::read_amount(words[2].substr(0, words[2].size() - 2));
    } else {
      impl::fail_tiers("no such tier", tier);
    }
  }
  if (tiers.file.empty()) impl::fail_tiers("there is no tier 'file'", description);
  return tiers;
}

/// Returns the name of the object with half `half` of all blocks on one of the ranks that divide
/// the layers.
[[nodiscard]] inline std::string half_name(std::size_t half, const GptPart& part) {
  return heddle::text("block", half / 2, half % 2 == 0 ? ".attention" : ".mlp", ".rank", part.rank,
                      "of", part.ranks);
}

/// Returns the name of the model whose weights a file has: it differs if a size, the precision, a
/// weight or the number of ranks that divide the layers does.
template <class Real>
[[nodiscard]] std::string store_model(const GptWeights<Real>& weights, std::size_t ranks) {
  const GptConfig& model = weights.config;
  return heddle::text("gpt, ", model.layers, " layers of width ", model.width, ", ", model.heads,
                      " heads, ", model.heads_of_keys(), " K,V heads, ", 8 * sizeof(Real),
                      " bits, on ", ranks, ranks == 1 ? " rank" : " ranks", ", checksum ",
                      heddle::crc32c(std::as_bytes(std::span(weights.values))));
}

/// Writes the halves of all blocks, as `ranks` ranks divide them, to the file of a tier::Store.
/// @throws format_error if it cannot be written.
template <class Real>
void write_halves(const std::string& file, const GptWeights<Real>& weights, std::size_t ranks) {
  heddle::tier::StoreWriter writer(file, store_model(weights, ranks));
  const GptTable whole(weights.config, 0, weights.config.layers);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const GptPart part{ranks, rank};
    const GptTable own(weights.config, 0, weights.config.layers, part);
    for (std::size_t h = 0; h < own.halves(); ++h) {
      std::vector<Real> values(own.half(h).count);
      for_each_owned(own, own.half(h), whole, [&](std::size_t at, std::size_t place) {
        values[at] = weights.values[place];
      });
      writer.add(half_name(h, part), values);
    }
  }
  writer.finish();
}

}  // namespace examples
