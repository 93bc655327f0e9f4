// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// all_to_all(): sends a block from every rank to every rank.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/block_counts.hpp>
#include <heddle/collective/impl/call.hpp>
#include <heddle/collective/impl/call_base.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/meet.hpp>
#include <heddle/collective/impl/views.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/collective/transferable_view.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The call that all_to_all() makes; see CallBase.
template <class Exec, class In, class Out>
struct AllToAllCall : CallBase<Exec, In, NoReduction> {
  using Base = CallBase<Exec, In, NoReduction>;
  using typename Base::Element;
  static constexpr const char* where = "heddle::collective::all_to_all";
  static_assert(match<In, Out>, "heddle::all_to_all: the output is a View of the input's kind");
  CallView<In> input;
  CallView<Out> output;
  BlockCounts sent = {}, received = {};
  std::vector<std::uint64_t> table = {};  ///< for uneven blocks: [r P + q] is what r sends to q

  void exchange() {
    // Counts are exchanged by all ranks or by none.
    agree(
        *this,
        [&] { sent = BlockCounts(where, input.size(), this->ranks(), this->options.counts); },
        [&] {
          return CollectiveCall{where,
                                {{"counts", this->options.counts.empty() ? "none" : "given"}}};
        });
    if (!this->options.counts.empty()) exchange_counts();
  }
  void check() {
    input.prepare(ViewUse::reads);
    output.prepare(ViewUse::writes);
    input.keep_apart_from(output);
    const std::size_t p = this->ranks();
    if (table.empty()) {
      received = BlockCounts(p * sent.count(this->rank()), p);
    } else {
      std::vector<std::size_t> column(p);
      std::size_t total = 0;
      for (std::size_t r = 0; r < p; ++r) total += column[r] = table[r * p + this->rank()];
      received = BlockCounts(where, total, p, column);
    }
    expect_size(where, "output", output.view(), received.total());
  }
  /// Returns the average bytes that a rank sends, which is the same number on all ranks.
  [[nodiscard]] CallSize size() const {
    const Bytes elements =
        table.empty() ? sent.total()
                      : std::accumulate(table.begin(), table.end(), Bytes{0}) / this->ranks();
    return {schedule::Collective::all_to_all, elements * sizeof(Element)};
  }
  [[nodiscard]] PerformerKey key() const {
    PerformerKey made = Base::key(size());
    for (const std::uint64_t count : table) made.blocks.push_back(count * sizeof(Element));
    return made;
  }
  [[nodiscard]] auto views() { return std::tie(input, output); }
  [[nodiscard]] CallMemory memory() const { return {input.data(), output.data()}; }

  /// Returns true if MPI's int counts suffice. The answer is the same on all ranks.
  [[nodiscard]] bool knows() const {
    Bytes most = 0;
    for (std::size_t r = 0; r < this->ranks(); ++r) {
      Bytes out = 0;
      Bytes in = 0;
      for (std::size_t q = 0; !table.empty() && q < this->ranks(); ++q) {
        out += table[r * this->ranks() + q];
        in += table[q * this->ranks() + r];
      }
      most = std::max({most, out, in, Bytes{sent.total()}});
    }
    return fits_int((most + this->ranks()) * sizeof(Element));
  }
  int library(MPI_Request* request) {
    const MPI_Comm all = this->comm->get();
    const void* const in = input.library_data();
    void* const out = output.library_data();
    if (is_even()) {
      const auto each = static_cast<int>(sent.count(0) * sizeof(Element));
      return request == nullptr
                 ? MPI_Alltoall(in, each, MPI_BYTE, out, each, MPI_BYTE, all)
                 : MPI_Ialltoall(in, each, MPI_BYTE, out, each, MPI_BYTE, all, request);
    }
    sent.to_mpi(sizeof(Element));
    received.to_mpi(sizeof(Element));
    return request == nullptr
               ? MPI_Alltoallv(in, sent.mpi_counts(), sent.mpi_firsts(), MPI_BYTE, out,
                               received.mpi_counts(), received.mpi_firsts(), MPI_BYTE, all)
               : MPI_Ialltoallv(in, sent.mpi_counts(), sent.mpi_firsts(), MPI_BYTE, out,
                                received.mpi_counts(), received.mpi_firsts(), MPI_BYTE, all,
                                request);
  }

 private:
  /// Fills `table` with the counts of all ranks.
  void exchange_counts() {
    const std::size_t p = this->ranks();
    struct Told {
      std::vector<std::uint64_t> mine, all;
    };
    auto told = std::make_unique<Told>();
    told->mine.assign(this->options.counts.begin(), this->options.counts.end());
    told->all.resize(p * p);
    const auto each = static_cast<int>(p);
    MPI_Request request = MPI_REQUEST_NULL;
    heddle::check(MPI_Iallgather(told->mine.data(), each, MPI_UINT64_T, told->all.data(), each,
                                 MPI_UINT64_T, this->comm->get(), &request),
                  where);
    // A collective cannot be cancelled: where a rank does not come, its memory stays MPI's.
    Told* const lent = told.release();
    complete(*this, request);
    told.reset(lent);
    table = std::move(told->all);
  }
  [[nodiscard]] bool is_even() const { return table.empty() && sent.even(); }
};

template <class Held, class Exec, class In, class Out>
[[nodiscard]] auto all_to_all_call(Held, const Exec& exec, const In& input, const Out& output,
                                   const Communicator& comm, const CallOptions& options) {
  return AllToAllCall<typename Held::template of<Exec>, typename Held::template of<In>,
                      typename Held::template of<Out>>{{exec, {}, &comm, options}, input, output};
}

}  // namespace impl

/// Sends block q of `input` to rank q of `comm`, for every q. `output` receives the blocks of ranks
/// 0, 1, ..., one after another. Blocks divide the first index. See CallOptions for the order of
/// elements and for the cost of other layouts.
///
/// CallOptions::counts has the number of elements that this rank sends to each rank. The ranks
/// exchange these numbers first. Without counts, the input is divided evenly and must have the same
/// size on all ranks. If `input` and `output` share memory, `input` is copied before the call.
///
/// The call waits for the work of `space` first, and returns when all blocks have arrived. All
/// ranks must call it, and either all of them give counts or none.
/// @throws contract_error if the size of a View does not fit. See CallOptions for all other errors.
template <class Exec, TransferableView In, TransferableView Out>
void all_to_all(const Exec& space, const In& input, const Out& output, const Communicator& comm,
                const CallOptions& options = {}) {
  impl::perform(
      [&](auto held) { return impl::all_to_all_call(held, space, input, output, comm, options); });
}

/// Starts an all_to_all() and returns a Request for it. Waits for the work of `space` before it
/// starts.
/// @throws the errors of all_to_all().
template <class Exec, TransferableView In, TransferableView Out>
[[nodiscard]] Request start_all_to_all(const Exec& space, const In& input, const Out& output,
                                       const Communicator& comm, const CallOptions& options = {}) {
  return impl::start(impl::all_to_all_call(impl::Kept{}, space, input, output, comm, options));
}

/// Returns an all_to_all() that can be performed repeatedly. The ranks exchange their counts once.
/// @throws the errors of all_to_all().
template <class Exec, TransferableView In, TransferableView Out>
[[nodiscard]] auto prepare_all_to_all(const Exec& space, const In& input, const Out& output,
                                      const Communicator& comm, const CallOptions& options = {}) {
  return Prepared(impl::all_to_all_call(impl::Kept{}, space, input, output, comm, options));
}

}  // namespace heddle::inline v0
