// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// Collective calls on Views against the MPI library's own calls of the same, made by hand: chosen
/// by a cost table that is measured just before, and by one that was measured for all of them at
/// first; by our own algorithms with delegation off; and reductions that MPI does not know against
/// the same by its user operations.
///
/// The two sides alternate sample by sample, each sample between barriers. Times are of the slowest
/// rank. Buffers are ordinary memory, the same on both sides; reductions that MPI does not know are
/// made in SharedViews once more, on our side.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/comm.hpp>
#include <heddle/core/text.hpp>

#include "../mpi_library.hpp"
#include "../support.hpp"

namespace hd = heddle;
using hd::schedule::Collective;

namespace {

constexpr const char* where = "collective/calls";
constexpr hd::Bytes limit = 64 << 10;  ///< below it the bar is what a call adds, above a ratio
constexpr std::array<hd::Bytes, 11> sizes{
    8, 64, 512, 4 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20};
constexpr std::array<Collective, 5> collectives{Collective::all_reduce, Collective::reduce_scatter,
                                                Collective::all_gather, Collective::all_to_all,
                                                Collective::broadcast};

/// As bars name it.
const std::string& name() {
  static const std::string found = hd::text(where, '_', bench::mpi_library());
  return found;
}

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using Vector = Kokkos::View<T*, Kokkos::HostSpace>;
using Call = std::function<void()>;

/// Seconds per call of `calls` calls, the slowest rank's.
double time_of(const Call& call, int calls, const hd::Communicator& comm) {
  MPI_Barrier(comm.get());
  double seconds = bench::seconds_of([&] {
                     for (int i = 0; i < calls; ++i) call();
                   }) /
                   calls;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm.get());
  return seconds;
}

/// Times of two calls that take turns.
struct Pairs {
  std::vector<double> library, ours;
};

Pairs take_turns(const Call& library, const Call& ours, const hd::Communicator& comm) {
  library();
  ours();
  // A sample of about a millisecond, and samples for about half a second.
  const double once = std::max(time_of(library, 3, comm), 1e-7);
  const int calls = static_cast<int>(std::clamp(1e-3 / once, 1.0, 500.0));
  const int rounds = static_cast<int>(std::clamp(0.25 / (once * calls), 11.0, 101.0));
  Pairs pairs;
  for (int round = 0; round < rounds; ++round) {
    double first = 0;
    if (round % 2 == 0) first = time_of(ours, calls, comm);
    pairs.library.push_back(time_of(library, calls, comm));
    pairs.ours.push_back(round % 2 == 0 ? first : time_of(ours, calls, comm));
  }
  return pairs;
}

/// One collective of so many bytes of floats: MPI's call by hand, and ours, in the same memory.
struct Case {
  Vector<float> in, out;

  Case(Collective collective, hd::Bytes bytes, const hd::Communicator& comm) {
    const std::size_t count = bytes / sizeof(float), block = count / 2;
    const std::size_t whole = 2 * block;
    in = Vector<float>("in", collective == Collective::all_gather ? block : whole);
    out = Vector<float>("out", collective == Collective::reduce_scatter ? block : whole);
    const float start = static_cast<float>(+comm.rank() + 1);
    for (std::size_t i = 0; i < in.size(); ++i) in(i) = start * static_cast<float>(i % 13);
  }

  [[nodiscard]] Call library(Collective collective, const hd::Communicator& comm) const {
    const MPI_Comm all = comm.get();
    const int whole = static_cast<int>(std::max(in.size(), out.size()));
    const int block = whole / 2;
    float* const from = in.data();
    float* const to = out.data();
    switch (collective) {
      case Collective::all_reduce:
        return [=] { MPI_Allreduce(MPI_IN_PLACE, from, whole, MPI_FLOAT, MPI_MAX, all); };
      case Collective::reduce_scatter:
        return [=] { MPI_Reduce_scatter_block(from, to, block, MPI_FLOAT, MPI_MAX, all); };
      case Collective::all_gather:
        return [=] { MPI_Allgather(from, block, MPI_FLOAT, to, block, MPI_FLOAT, all); };
      case Collective::all_to_all:
        return [=] { MPI_Alltoall(from, block, MPI_FLOAT, to, block, MPI_FLOAT, all); };
      default: return [=] { MPI_Bcast(from, whole, MPI_FLOAT, 0, all); };
    }
  }

  /// A maximum, so that values stay what they are however often it is made.
  [[nodiscard]] Call ours(Collective collective, const hd::Communicator& comm,
                          const hd::CallOptions& options) const {
    const Exec exec{};
    switch (collective) {
      case Collective::all_reduce:
        return [=, this, &comm] { hd::all_reduce(exec, in, hd::Max{}, comm, options); };
      case Collective::reduce_scatter:
        return [=, this, &comm] { hd::reduce_scatter(exec, in, out, hd::Max{}, comm, options); };
      case Collective::all_gather:
        return [=, this, &comm] { hd::all_gather(exec, in, out, comm, options); };
      case Collective::all_to_all:
        return [=, this, &comm] { hd::all_to_all(exec, in, out, comm, options); };
      default: return [=, this, &comm] { hd::broadcast(exec, in, hd::Rank{0}, comm, options); };
    }
  }

  [[nodiscard]] double checksum() const {
    double sum = 0;
    for (std::size_t i = 0; i < in.size(); ++i) sum += in(i) * static_cast<double>(i % 7 + 1);
    for (std::size_t i = 0; i < out.size(); ++i) sum += out(i) * static_cast<double>(i % 5 + 1);
    return sum;
  }
};

/// The worst of several summaries, and of what.
class Worst {
 public:
  explicit Worst(bool least) : m_least(least) {}
  void see(const bench::Summary& summary, std::string of) {
    if (!m_of.empty() &&
        (m_least ? summary.median >= m_worst.median : summary.median <= m_worst.median))
      return;
    m_worst = summary;
    m_of = std::move(of);
  }
  [[nodiscard]] const bench::Summary& summary() const { return m_worst; }
  [[nodiscard]] const std::string& of() const { return m_of; }

 private:
  bool m_least;
  bench::Summary m_worst;
  std::string m_of;
};

std::string bytes_text(hd::Bytes bytes) {
  if (bytes < 1024) return hd::text(bytes, "B");
  return bytes < 1 << 20 ? hd::text(bytes >> 10, "KiB") : hd::text(bytes >> 20, "MiB");
}

/// With delegation off, by messages: one each way for few bytes, halves for many.
hd::CallOptions own(Collective collective, hd::Bytes bytes) {
  using hd::schedule::Algorithm;
  const bool few = collective == Collective::all_reduce && bytes < 4 << 10;
  const Algorithm algorithm = collective == Collective::broadcast ? Algorithm::binomial_tree
                              : few                               ? Algorithm::recursive_doubling
                                                                  : Algorithm::direct;
  return {.algorithm = algorithm, .shared_memory = false};
}

/// Every collective and size with `options_of` it; prints the worst below and above the limit.
template <class OptionsOf>
void compare(std::string_view what, OptionsOf&& options_of, bool prints,
             const hd::Communicator& comm) {
  Worst added(false), below(true), above(true);
  for (const Collective collective : collectives) {
    for (const hd::Bytes bytes : sizes) {
      const Case each(collective, bytes, comm), other(collective, bytes, comm);
      const hd::CallOptions options = options_of(collective, bytes);
      const Call library = each.library(collective, comm);
      library();
      other.ours(collective, comm, options)();
      // An algorithm of ours works in the input of a reduce_scatter.
      if (collective == Collective::reduce_scatter) Kokkos::deep_copy(other.in, each.in);
      bench::require_equal(hd::text(collective, " of ", bytes, " bytes"), other.checksum(),
                           each.checksum());
      const Pairs pairs = take_turns(library, each.ours(collective, comm, options), comm);
      std::vector<double> differences;
      for (std::size_t i = 0; i < pairs.ours.size(); ++i)
        differences.push_back((pairs.ours[i] - pairs.library[i]) * 1e6);
      const std::string of = hd::text(collective, "_", bytes_text(bytes));
      const bench::Summary ratio = bench::ratios(pairs.library, pairs.ours);
      (bytes < limit ? below : above).see(ratio, of);
      if (bytes < limit) added.see(bench::summarise(differences), of);
      if (prints) bench::print_ratio(name(), hd::text(what, "_", of), ratio);
    }
  }
  if (!prints) return;
  std::cout << what << " is worst at " << added.of() << " (added), " << below.of() << " and "
            << above.of() << '\n';
  bench::print_value(name(), hd::text(what, "_adds_below_64kB"), added.summary(), "us");
  bench::print_ratio(name(), hd::text(what, "_below_64kB"), below.summary());
  bench::print_ratio(name(), hd::text(what, "_above_64kB"), above.summary());
}

/// An all-reduce of elements that MPI does not know, against the same by MPI_Op_create.
template <class T, class R, class Value>
void compare_operation(std::string_view what, Value&& value, bool prints,
                       const hd::Communicator& comm) {
  const hd::MpiOperation<T, R> taught;
  for (const hd::Bytes bytes : {hd::Bytes{64} << 10, hd::Bytes{1} << 20, hd::Bytes{16} << 20}) {
    const std::size_t count = bytes / sizeof(T);
    const Vector<T> start("start", count), by_mpi("by_mpi", count), by_us("by_us", count),
        reference("reference", count);
    for (std::size_t i = 0; i < count; ++i) start(i) = value(+comm.rank(), i);
    Kokkos::deep_copy(by_mpi, start);
    Kokkos::deep_copy(by_us, start);
    const hd::SharedView<T*> shared(comm, count);
    Kokkos::deep_copy(shared.view(), start);
    const Call library = [&, all = comm.get()] {
      MPI_Allreduce(MPI_IN_PLACE, by_mpi.data(), static_cast<int>(count), taught.type(),
                    taught.operation(), all);
    };
    library();
    const auto compare_in = [&](const auto& data, std::string_view in) {
      const Call ours = [&] { hd::all_reduce(Exec{}, data, R{}, comm); };
      ours();
      // Two ranks: both sides merge the same two elements, in either order.
      for (std::size_t i = 0; i < count; ++i) {
        const auto a = static_cast<double>(value(7, reference(i)));
        const auto b = static_cast<double>(value(7, data(i)));
        if (!(std::abs(a - b) <= 1e-5 * std::abs(a)))
          throw hd::contract_error(
              {where, "the merges differ", hd::text(a, " and ", b, " at ", i)});
      }
      const Pairs pairs = take_turns(library, ours, comm);
      if (prints)
        bench::print_ratio(name(), hd::text(what, "_", bytes_text(bytes), in),
                           bench::ratios(pairs.library, pairs.ours));
    };
    Kokkos::deep_copy(reference, by_mpi);
    compare_in(by_us, "");
    compare_in(shared.view(), "_in_shared_views");
  }
}

/// Makes an element, or a number of one to compare.
struct Softmax {
  using T = hd::SoftmaxPartial<float>;
  T operator()(std::size_t rank, std::size_t i) const {
    return {static_cast<float>((i * 7 + rank * 3) % 23), 1};
  }
  // The merge of {m, s} with itself doubles s and never ends: what is compared is s exp(m).
  double operator()(std::size_t, const T& value) const { return value.max + std::log(value.sum); }
};
struct Narrow {
  using T = hd::bf16;
  T operator()(std::size_t rank, std::size_t i) const {
    return T(static_cast<float>((i * 7 + rank * 3) % 23) * 1e-20f);
  }
  double operator()(std::size_t, const T& value) const { return static_cast<float>(value); }
};

void run() {
  const hd::Communicator comm(MPI_COMM_WORLD);
  hd::expects(comm.size() == 2, [] {
    return hd::ErrorInfo{where, "it compares calls of two ranks"};
  });
  const bool prints = comm.rank() == hd::Rank{0};
  if (prints) bench::skip_other_libraries(where);
  compare_operation<Softmax::T, hd::OnlineSoftmax>("softmax", Softmax{}, prints, comm);
  compare_operation<Narrow::T, hd::SumIn<float>>("cast", Narrow{}, prints, comm);
  hd::CollectiveMeasureOptions measured;
  measured.collectives.assign(collectives.begin(), collectives.end());
  measured.sizes.assign(sizes.begin(), sizes.end());
  measured.candidates = 2;
  measured.budget = 0.3;
  const auto costs =
      std::make_shared<const hd::plan::CostTable>(hd::measure_collectives(comm, measured));
  // How far apart two cores of a virtual machine are may change from one minute to the next.
  compare(
      "automatic",
      [&](Collective collective, hd::Bytes bytes) {
        measured.collectives = {collective};
        measured.sizes = {bytes};
        return hd::CallOptions{.costs = std::make_shared<const hd::plan::CostTable>(
                                   hd::measure_collectives(comm, measured))};
      },
      prints, comm);
  compare(
      "measured_before", [&](Collective, hd::Bytes) { return hd::CallOptions{.costs = costs}; },
      prints, comm);
  compare("own", own, prints, comm);
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const int status = bench::status_of(where, [] { run(); });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
}
