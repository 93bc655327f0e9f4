// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Matrices in the banks of a memory that computes: which bank reads which part of a matrix, in
/// which of its rows, and how many rows it activates. Source of the mapping: Wu, Wang and Lu,
/// "PIM-GPT: a hybrid process-in-memory accelerator for autoregressive transformers", 2023.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/share.hpp>

namespace heddle::inline v0::systems {

/// A memory of channels with banks. Each bank has one open row, and multipliers that take one burst
/// of the open row at a time.
struct DramGrid {
  int channels = 8;     ///< number of channels
  int banks = 16;       ///< banks of a channel
  Bytes row = 2048;     ///< bytes of a row of a bank
  Bytes burst = 32;     ///< bytes that a bank reads at once; divides `row`
  Bytes vector = 2048;  ///< bytes of the input vector that a channel holds at a time

  /// Returns the number of banks of all channels. Bank b belongs to channel b / banks.
  [[nodiscard]] int all_banks() const noexcept { return channels * banks; }
  friend bool operator==(const DramGrid&, const DramGrid&) = default;
};

/// The place of a matrix in the banks. A burst holds consecutive inputs of one output.
enum class BankLayout : std::uint8_t {
  /// Each bank has the same number of bursts, to within one, one after another in the order in
  /// which it reads them. Few banks need more than one partial sum of an output.
  packed,
  /// Whole outputs are dealt round-robin to the banks, with room for Gemv::reserved inputs each. So
  /// a matrix may get more outputs (the keys of new tokens) or more inputs (the values of new
  /// tokens), and nothing moves.
  dealt,
  /// The matrix lies as in an ordinary memory, output after output, and consecutive bursts belong
  /// to consecutive banks. Every bank has a partial sum of almost every output.
  interleaved,
};

/// A product y = W x of a matrix in the banks with a vector. Attention has a vector for each head:
/// the keys of a head and a token are an output with the query of the head as x, and the values of
/// all tokens in one column are an output with the probabilities of the head as x.
struct Gemv {
  std::int64_t outputs = 0;                ///< rows of W
  std::int64_t inputs = 0;                 ///< columns of W
  BankLayout layout = BankLayout::packed;  ///< the place of W
  std::int64_t reserved =
      0;                   ///< inputs that an output has room for in BankLayout::dealt; 0: inputs
  std::int64_t heads = 1;  ///< vectors x; with several, each output belongs to one of them
  Bytes element = 2;       ///< bytes of an element of W and x; divides the burst

  /// Returns the bytes of all vectors x.
  [[nodiscard]] Bytes vector_bytes() const noexcept {
    return static_cast<Bytes>(inputs * heads) * element;
  }
  friend bool operator==(const Gemv&, const Gemv&) = default;
};

/// The work of a bank for a Gemv.
struct BankWork {
  std::int64_t bursts = 0;       ///< bursts that it reads
  std::int64_t activations = 0;  ///< rows that it opens; the first one counts
  std::int64_t results = 0;      ///< partial sums that it returns
  friend bool operator==(const BankWork&, const BankWork&) = default;
};

/// A burst that a bank reads.
struct BankRead {
  int bank = 0;              ///< the bank
  std::int64_t row = 0;      ///< the row of the bank, from the first row of the matrix on
  std::int64_t output = 0;   ///< the output that it belongs to
  std::int64_t input = 0;    ///< its first input
  std::int64_t count = 0;    ///< number of its inputs; the last burst of an output may have fewer
  std::int64_t segment = 0;  ///< the part of the vector that it needs
};

/// Throws contract_error if the grid or the product has no size or no head, if a burst does not
/// divide the row and the vector or an element does not divide the burst, or if `reserved` does not
/// fit.
void check(const DramGrid& grid, const Gemv& gemv);

/// Calls `visit(BankRead)` for all reads of `gemv`. The reads of a bank come in the order in which
/// it makes them: for each part of the vector that fits into a channel, output after output.
/// @throws contract_error as check() does.
template <class Visit>
void for_each_bank_read(const DramGrid& grid, const Gemv& gemv, Visit&& visit) {
  check(grid, gemv);
  const auto banks = static_cast<std::int64_t>(grid.all_banks());
  const auto elements = static_cast<std::int64_t>(grid.burst / gemv.element);
  const auto row_bursts = static_cast<std::int64_t>(grid.row / grid.burst);
  const auto segment_bursts = static_cast<std::int64_t>(grid.vector / grid.burst);
  const std::int64_t bursts = (gemv.inputs + elements - 1) / elements;  // of an output
  const std::int64_t room = (std::max(gemv.inputs, gemv.reserved) + elements - 1) / elements;
  const std::int64_t total = gemv.outputs * bursts;
  std::int64_t number = 0;  // in the order of the reads
  std::int64_t bank = 0;    // of a packed matrix
  std::int64_t begin = 0;   // its first read
  std::int64_t end = (total + banks - 1) / banks;
  for (std::int64_t first = 0; first < bursts; first += segment_bursts)
    for (std::int64_t output = 0; output < gemv.outputs; ++output)
      for (std::int64_t b = first; b < std::min(bursts, first + segment_bursts); ++b, ++number) {
        BankRead read{0,
                      0,
                      output,
                      b * elements,
                      std::min(elements, gemv.inputs - b * elements),
                      first / segment_bursts};
        if (gemv.layout == BankLayout::packed) {
          if (number == end) {
            begin = end;
            end += heddle::impl::even_count(total, banks, ++bank);
          }
          read.bank = static_cast<int>(bank);
          read.row = (number - begin) / row_bursts;
        } else if (gemv.layout == BankLayout::dealt) {
          read.bank = static_cast<int>(output % banks);
          read.row = (output / banks * room + b) / row_bursts;
        } else {
          const std::int64_t address = output * bursts + b;
          read.bank = static_cast<int>(address % banks);
          read.row = address / banks / row_bursts;
        }
        visit(read);
      }
}

/// Returns the work of each bank for `gemv`. A bank activates a row if its previous read was in
/// another row, and returns a partial sum whenever it goes on to another output or to another part
/// of the vector.
/// @throws contract_error as check() does.
[[nodiscard]] std::vector<BankWork> bank_work(const DramGrid& grid, const Gemv& gemv);

/// Returns the share of reads in an open row: 1 - activations / bursts, over all banks. 1 if there
/// are no reads.
[[nodiscard]] double row_hit_rate(std::span<const BankWork> work);

/// Returns the largest number of bursts of a bank over the mean. 1 if there are no reads.
[[nodiscard]] double bank_imbalance(std::span<const BankWork> work);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/pim_gpt/bank_mapping.ipp>
#endif
