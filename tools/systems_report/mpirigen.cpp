// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// MPIrigen: its data transformation and its score, on programs that emit_mpi() writes in the place
/// of a model.

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/mpirigen/emit_mpi.hpp>

#include "../mpigen/mpi_calls.hpp"
#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

std::size_t count_calls(std::string_view file, std::string_view phrase) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = file.find(phrase, at)) != std::string_view::npos; ++at) ++found;
  return found;
}

std::string four_digits(double value) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%.4f", value);
  return digits;
}

/// The programs of every schedule of the catalogue on 4 ranks with 8 microbatches.
std::vector<std::string> emitted_programs() {
  std::vector<std::string> all;
  for (const auto& entry : hd::schedule::catalogue())
    all.push_back(hd::systems::emit_mpi(hd::schedule::expand(
        hd::weave(entry.orders({}), {.activation = 64, .saved = 64, .parameters = 64}),
        hd::schedule::CollectiveForm{})));
  return all;
}

/// Whether programs of `schedule` have `messages` sends and as many receives.
bool has_posts(const hd::Schedule& schedule, int messages) {
  const std::string file = hd::systems::emit_mpi(schedule);
  const auto expected = static_cast<std::size_t>(messages);
  return count_calls(file, "MPI_Isend(") == expected && count_calls(file, "MPI_Irecv(") == expected;
}

}  // namespace

std::vector<Comparison> mpirigen() {
  std::size_t calls = 0, same = 0;
  const std::vector<std::string> all = emitted_programs();
  for (const std::string& program : all) {
    const tool::Stripped stripped = tool::strip(program);
    const bool none_left = tool::strip(stripped.source).calls.empty();
    const auto list = tool::read_list(tool::to_list(stripped.calls), "list");
    same += none_left && tool::insert({stripped.source, list}) == program;
    calls += stripped.calls.size();
  }

  bool matched = true;
  for (int p = 2; p <= 6; ++p) {
    for (int m = 1; m <= 5; ++m)
      matched = matched && has_posts(hd::schedule::one_f_one_b({.ranks = p, .microbatches = m}),
                                     2 * m * (p - 1));
    matched = matched && has_posts(hd::schedule::collective(hd::schedule::Collective::all_reduce,
                                                            hd::schedule::Algorithm::ring,
                                                            {.ranks = p, .bytes = 8 * 60}),
                                   2 * p * (p - 1));
  }

  // Of six calls each, five stand in the same lines, four of them are of the same function, and of
  // the 12 arguments of these one differs.
  const auto truth = tool::read_list(
      "3, MPI_Init(&argc, &argv);\n5, MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
      "6, MPI_Comm_size(MPI_COMM_WORLD, &size);\n"
      "10, MPI_Send(a, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);\n"
      "12, MPI_Recv(a, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n20, "
      "MPI_Finalize();\n",
      "truth");
  const auto predicted = tool::read_list(
      "3, MPI_Init(&argc, &argv);\n5, MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
      "6, MPI_Comm_size(MPI_COMM_WORLD, &size);\n"
      "10, MPI_Send(a, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);\n"
      "12, MPI_Irecv(a, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);\n"
      "15, MPI_Barrier(MPI_COMM_WORLD);\n",
      "prediction");
  const tool::CallScore result = tool::score(truth, predicted, 2);
  const std::string scores =
      hd::text(four_digits(result.location()), ", ", four_digits(result.function()), ", ",
               four_digits(result.argument()));
  const std::string by_hand =
      hd::text(four_digits(10.0 / 12), ", ", four_digits(8.0 / 12), ", ", four_digits(11.0 / 12));
  return {
      {"calls out to a list and back in, on emitted programs of the catalogue, P=4 M=8", "",
       hd::text(same, " of ", all.size(), " programs are the same, ", calls, " calls"),
       "all the same, no call left", verdict(same == all.size() && calls > 0)},
      {"sends and receives of emitted programs, 1F1B and ring all-reduce", "",
       matched ? "2M(P-1); 2P(P-1)" : "others", "2M(P-1); 2P(P-1), P=2 to 6, M=1 to 5",
       verdict(matched)},
      {"score of a list of six calls: location, function, arguments, within 2 lines", "", scores,
       hd::text(by_hand, " by hand"), verdict(scores == by_hand)},
      {"accuracy of predicted calls", "0.8 (location, function), > 0.9 (arguments)", "", "none",
       "not reproducible: it is that of a language model and of its corpus of programs; here calls "
       "are derived from a schedule, not predicted"},
  };
}

}  // namespace report
