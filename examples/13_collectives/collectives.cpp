// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Collective calls on Views: a softmax over logits on several ranks, a sum that runs while the rank
// computes, the moments of a sample, blocks of uneven sizes, a table of measured times, shared
// memory, small messages with error feedback, a gradient that is sent as its factors, and the
// Schedule of a call.
//
//   mpiexec -n 3 example_13_collectives     (or any other number of ranks)

#include <cmath>
#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <vector>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/measure_collectives.hpp>
#include <heddle/collective/moments.hpp>
#include <heddle/collective/online_softmax.hpp>
#include <heddle/collective/shared_view.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/message_costs.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/hap/sum_by_factors.hpp>

namespace hd = heddle;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using Vector = Kokkos::View<T*, Kokkos::HostSpace>;

/// Returns logit i of 12, on any rank.
double logit(std::size_t i) { return 300 * std::sin(static_cast<double>(i)); }

void run(hd::Environment& env) {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto me = +comm.rank(), ranks = static_cast<std::size_t>(comm.size());
  const bool speaks = me == 0;

  // The normaliser of a softmax: one element, merged by a reduction that MPI does not have.
  const Vector<hd::SoftmaxPartial<double>> partial("partial", 1);
  partial(0) = hd::identity<hd::SoftmaxPartial<double>>(hd::OnlineSoftmax{});
  for (std::size_t i = me; i < 12; i += ranks)
    hd::OnlineSoftmax{}.join(partial(0), {logit(i), 1.0});
  hd::all_reduce(Exec{}, partial, hd::OnlineSoftmax{}, comm);
  double total = 0;
  for (std::size_t i = 0; i < 12; ++i)
    total += std::exp(logit(i) - partial(0).max) / partial(0).sum;
  if (speaks) std::cout << "the softmax of 12 logits sums to " << total << '\n';

  // A sum in flight. It makes progress in test(), which the rank calls between pieces of work, or
  // in a separate thread.
  const Vector<double> sum("sum", 1000);
  Kokkos::deep_copy(sum, static_cast<double>(me + 1));
  hd::Request request = hd::all_reduce<hd::Request>(Exec{}, sum, hd::Sum{}, comm,
                                                    {.algorithm = hd::schedule::Algorithm::ring});
  double worked = 0;
  for (int piece = 0; piece < 100 && !request.test(); ++piece) worked += std::sqrt(piece);
  request.wait();
  if (env.thread_level() == hd::ThreadLevel::multiple) {
    Kokkos::deep_copy(sum, static_cast<double>(me + 1));
    hd::Request alone =
        hd::all_reduce<hd::Request>(Exec{}, sum, hd::Sum{}, comm, {.progress_thread = true});
    for (int piece = 0; piece < 1000; ++piece) worked += std::sqrt(piece);
    alone.wait();
  }
  if (speaks)
    std::cout << "sum " << sum(0) << ", expected " << static_cast<double>(ranks * (ranks + 1)) / 2
              << '\n';

  // Moments, and blocks of uneven sizes: rank r has r + 1 values.
  std::vector<std::size_t> counts;
  for (std::size_t r = 0; r < ranks; ++r) counts.push_back(r + 1);
  const Vector<double> mine("mine", me + 1), all("all", ranks * (ranks + 1) / 2);
  Kokkos::deep_copy(mine, static_cast<double>(me));
  hd::all_gather(Exec{}, mine, all, comm, {.counts = counts});
  const Vector<hd::Moments::Partial<double>> moments("moments", 1);
  moments(0) = {static_cast<double>(me + 1), static_cast<double>(me), 0};
  hd::all_reduce(Exec{}, moments, hd::Moments{}, comm);
  double mean = 0;
  for (std::size_t i = 0; i < all.size(); ++i) mean += all(i) / static_cast<double>(all.size());
  if (speaks)
    std::cout << "mean " << moments(0).mean << ", of the values gathered " << mean << '\n';

  // The times of calls on this machine, measured once or read from a file of the program `measure`.
  // Each call then uses the fastest algorithm, or the MPI library's own call if that is faster.
  const auto costs = std::make_shared<const hd::plan::CostTable>(hd::measure_collectives(
      comm,
      {.collectives = {hd::schedule::Collective::all_reduce}, .sizes = {8, 8192}, .budget = 0.1}));
  Kokkos::deep_copy(sum, static_cast<double>(me + 1));
  hd::all_reduce(Exec{}, sum, hd::Sum{}, comm, {.costs = costs});
  if (speaks) std::cout << "the fastest way, a sum of " << sum(0) << '\n';

  // Memory that the ranks of a host share. Large Views in it are summed in place.
  const hd::SharedView<double*> shared(comm, 100'000);
  Kokkos::deep_copy(shared.view(), static_cast<double>(me + 1));
  hd::all_reduce(Exec{}, shared.view(), hd::Sum{}, comm);
  if (speaks) std::cout << "in shared memory, a sum of " << shared.view()(99'999) << '\n';

  // Messages of 8-bit numbers, with a scale for every 64 elements. The rounding error of one
  // performance of a prepared call is added in the next one, so that over many steps nothing is
  // lost.
  for (const bool feedback : {true, false}) {
    const Vector<float> rounded("rounded", 64);
    auto small = hd::all_reduce<hd::Prepared>(
        Exec{}, rounded, hd::Sum{}, comm,
        {.algorithm = hd::schedule::Algorithm::ring,
         .codec = hd::Codec{.type = hd::Scalar::i8, .block = 64, .feedback = feedback}});
    double mean_sum = 0;
    for (int step = 0; step < 100; ++step) {
      Kokkos::deep_copy(rounded, 0.1F);
      rounded(0) = 1;  // its block's scale
      small();
      mean_sum += rounded(1) / 100;
    }
    if (speaks)
      std::cout << "100 sums in 8 bits, " << (feedback ? "with" : "without")
                << " error feedback: on average " << std::round(1000 * mean_sum) / 1000 << '\n';
  }

  // A gradient of few rows is sent as its factors: here 96 numbers per rank instead of 2048.
  const Kokkos::View<double**, Kokkos::HostSpace> x("x", ranks, 64), dy("dy", ranks, 32),
      gradient("gradient", 64, 32);
  for (std::size_t i = 0; i < 64; ++i) x(me, i) = static_cast<double>(me + 1);
  for (std::size_t j = 0; j < 32; ++j) dy(me, j) = 1;
  hd::systems::sum_by_factors(Exec{}, x, dy, gradient, comm);
  if (speaks) std::cout << "a gradient by its factors, " << gradient(63, 31) << '\n';

  // A collective of Heddle's is a Schedule: it can be printed, counted and simulated.
  auto prepared = hd::all_reduce<hd::Prepared>(Exec{}, sum, hd::Max{}, comm,
                                               {.algorithm = hd::schedule::Algorithm::ring});
  prepared();
  if (speaks) {
    const hd::Schedule schedule = prepared.schedule();
    const hd::Machine machine = hd::Machine::uniform(comm.size(), {"rank"}, {1e-6, 1e9});
    std::cout << schedule.name() << ": " << schedule.size() << " actions, "
              << hd::simulate(schedule, hd::plan::MessageCosts(machine)).makespan() * 1e6
              << " us on links of 1 us and 1 GB/s\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    // The progress thread needs `multiple`, if MPI provides it. Everything else needs only
    // `funneled`.
    hd::Environment env(argc, argv, hd::ThreadLevel::multiple);
    run(env);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "collectives: " << error.what() << '\n';
    return 1;
  }
}
