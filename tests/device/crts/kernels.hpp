// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Kernels that run on both implementations of the core group, and the list of them. C++17.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/device/core_group/options.hpp>

namespace heddle_crts_test {

/// A 7 x 5 table per core, of which rows and a block of columns are moved.
constexpr std::size_t rows = 7;
constexpr std::size_t columns = 5;
constexpr std::size_t table = rows * columns;

/// Scales its core's table by tiles of whole rows, and shifts a block of columns with strided
/// transfers.
struct Tiles {
  const float* in;
  float* out;
  float factor;

  template <class Core>
  void operator()(Core& core) const {
    const float* const mine = in + static_cast<std::size_t>(core.index()) * table;
    float* const result = out + static_cast<std::size_t>(core.index()) * table;
    auto& reply = core.reply();
    const std::size_t mark = core.mark();
    float* const row = core.template allocate<float>(columns);
    for (std::size_t r = 0; r < rows; ++r) {
      reply.count = 0;
      core.get(row, mine + r * columns, columns * sizeof(float), reply);
      core.wait(reply, 1);
      for (std::size_t c = 0; c < columns; ++c) row[c] *= factor + static_cast<float>(core.row());
      core.put(result + r * columns, row, columns * sizeof(float), reply);
      core.wait(reply, 2);
    }
    core.release(mark);
    float* const block = core.template allocate<float>(2 * rows);
    reply.count = 0;
    core.get_strided(block, result + 1, 2 * rows * sizeof(float), 2 * sizeof(float),
                     (columns - 2) * sizeof(float), reply);
    core.wait(reply, 1);
    for (std::size_t i = 0; i < 2 * rows; ++i) block[i] += static_cast<float>(core.column());
    core.put_strided(result + 2, block, 2 * rows * sizeof(float), 2 * sizeof(float),
                     (columns - 2) * sizeof(float), reply);
    core.wait(reply, 2);
  }
};

/// A sum over all cores: along rows by transfers, along columns by broadcasts; every core has it.
struct Sum {
  const double* in;
  double* out;

  template <class Core>
  void operator()(Core& core) const {
    double* const value = core.template allocate<double>(1);
    double* const other = core.template allocate<double>(1);
    auto& reply = core.reply();
    auto& sent = core.reply();
    auto& received = core.reply();
    core.get(value, in + core.index(), sizeof(double), reply);
    core.wait(reply, 1);
    core.synchronise();
    const int right = core.index() - core.column() + (core.column() + 1) % 8;
    double sum = *value;
    for (std::uint32_t step = 1; step < 8; ++step) {
      core.rma_put(right, other, value, sizeof(double), sent, received);
      core.wait(received, step);
      core.wait(sent, step);
      core.synchronise_row();
      *value = *other;
      sum += *value;
      core.synchronise_row();
    }
    *value = sum;
    double total = 0;
    for (int row = 0; row < 8; ++row) {
      core.broadcast_column(other, value, sizeof(double), row);
      total += *other;
    }
    core.synchronise_column();
    *value = total;
    // The same number for all of a row and of the group: of the core on the diagonal, then of one.
    core.broadcast_row(other, value, sizeof(double), core.row());
    *value = *other;
    core.broadcast(other, value, sizeof(double), 37);
    core.put(out + core.index(), other, sizeof(double), reply);
    core.wait(reply, 2);
  }
};

/// Each core reads from the one in the transposed place of the grid.
struct Transpose {
  std::int32_t* out;

  template <class Core>
  void operator()(Core& core) const {
    std::int32_t* const mine = core.template allocate<std::int32_t>(2);
    auto& here = core.reply();
    auto& there = core.reply();
    mine[0] = 100 * core.row() + core.column();
    core.synchronise();
    core.rma_get(mine + 1, 8 * core.column() + core.row(), mine, sizeof(std::int32_t), here, there);
    core.wait(here, 1);
    core.wait(there, 1);
    core.put(out + core.index(), mine + 1, sizeof(std::int32_t), here);
    core.wait(here, 2);
  }
};

/// What the kernels leave in main memory.
struct Results {
  std::vector<float> tiles = std::vector<float>(64 * table);
  std::vector<double> sum = std::vector<double>(64);
  std::vector<std::int32_t> transposed = std::vector<std::int32_t>(64);
};

template <class Group>
Results run_kernels(Group& group) {
  std::vector<float> numbers(64 * table);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.25f * static_cast<float>(i % 101);
  std::vector<double> terms(64);
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = 1.0 / static_cast<double>(3 + i);
  Results results;
  group.launch("tiles", Tiles{numbers.data(), results.tiles.data(), 1.5f});
  group.launch("sum", Sum{terms.data(), results.sum.data()}, heddle::Cooperative::yes);
  group.launch("transpose", Transpose{results.transposed.data()}, heddle::Cooperative::yes);
  return results;
}

/// Defined in machine.cpp.
Results run_on_machine();
void run_without_a_wait_on_machine();
std::size_t largest_block_on_machine();

}  // namespace heddle_crts_test
