// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// together: 4

/// @file
/// Reruns the published comparisons that Heddle has: systems_report [NAME], or --list for the
/// names. Prints, for each comparison of a system,
///   name | what is compared | published | ours | bar | verdict
/// with the verdict `holds`, `falls short`, `not judged: why`, `skipped: why` or `not reproducible:
/// why`, computed in this run. A line without a bar is not judged. Status 1 where one falls short,
/// 2 for a name that is not there.
///
/// A new system is a function that returns its comparisons, declared in comparison.hpp, and a line
/// in `systems`.

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>

#include "../common/command_line.hpp"
#include "comparison.hpp"

namespace {

struct System {
  const char* name;
  std::vector<report::Comparison> (*compare)();
};

constexpr System systems[] = {
    {"FlexPipe", report::flexpipe},
    {"Chimera", report::chimera},
    {"HGTrainer", report::hgtrainer},
    {"Metis", report::metis},
    {"DAPPLE planner", report::dapple_planner},
    {"DAPPLE runtime", report::dapple_runtime},
    {"PipeDream planner", report::pipedream_planner},
    {"PipeDream runtime", report::pipedream_runtime},
    {"GPipe", report::gpipe},
    {"1F1B", report::one_f_one_b},
    {"interleaved 1F1B", report::interleaved},
    {"ZB-H1, ZB-V", report::zero_bubble},
    {"DualPipe, DualPipeV", report::dualpipe},
    {"HAP", report::hap},
    {"Ada-Grouper", report::ada_grouper},
    {"Rhino", report::rhino},
    {"2BP", report::two_bp},
    {"EnergonAI", report::energon},
    {"TPI-LLM star all-reduce", report::tpi_llm_star},
    {"TPI-LLM prefetch window", report::tpi_llm_window},
    {"Holmes", report::holmes},
    {"Frontier 3D", report::frontier_3d},
    {"low-bandwidth partitioning", report::low_bandwidth},
    {"CO2", report::co2},
    {"unified programming model", report::unified},
    {"Ulysses", report::ulysses},
    {"Ring Attention", report::ring_attention},
    {"RSA", report::rsa},
    {"USP", report::usp},
    {"TokenRing", report::token_ring},
    {"DistriFusion", report::distrifusion},
    {"PCPP", report::pcpp},
    {"T3", report::t3},
    {"C4", report::c4},
    {"flow splitting", report::flow_splitting},
    {"Pathways", report::pathways},
    {"TEMPI", report::tempi},
    {"MPIrigen", report::mpirigen},
    {"SWAlloc", report::sw_alloc},
    {"SambaNova SN40L", report::sn40l},
    {"NanoFlow", report::nano_flow},
    {"ExFlow", report::exflow},
    {"FlexSP", report::flexsp},
    {"DSP", report::dsp},
    {"hybrid CPU balance", report::hybrid_balance},
    {"graph load balance", report::graph_balance},
    {"Multiverse", report::multiverse},
    {"ParallelPrompt", report::parallel_prompt},
    {"ParScale", report::parscale},
    {"Non-deep networks", report::non_deep},
    {"Lagrangian PINN", report::lagrangian_pinn},
    {"feedforward solving", report::fixed_point},
    {"SAT speed-up prediction", report::sat},
    {"LPD", report::lpd},
    {"PIM-GPT", report::pim_gpt},
    {"AIPerf", report::aiperf},
    {"GradSign", report::grad_sign},
    {"PHoToNs", report::photons},
};

/// Prints one system; true where nothing falls short.
bool print(const System& system) {
  bool good = true;
  for (const report::Comparison& line : system.compare()) {
    std::cout << system.name << " | " << line.what << " | " << line.published << " | " << line.ours
              << " | " << line.bar << " | " << line.verdict << '\n';
    good = good && line.verdict != report::falls_short;
  }
  return good;
}

/// All systems, or the one that is `wanted`; the status.
int report_on(const tool::CommandLine& program, const std::string& wanted) {
  std::vector<std::string_view> names;
  for (const System& system : systems) names.emplace_back(system.name);
  if (!wanted.empty() && std::ranges::find(names, wanted) == names.end())
    throw program.no_such("system", wanted, names);
  const Kokkos::ScopeGuard kokkos;
  bool good = true;
  for (const System& system : systems)
    if (wanted.empty() || wanted == system.name) good = print(system) && good;
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string wanted;
  bool list = false;
  tool::CommandLine program("systems_report",
                            "Reruns the published comparisons. Status 1 if one falls short.");
  program.add_argument("NAME", &wanted, "of a system; without one, all are compared", false);
  program.add_flag("list", list, "prints the names");
  return program.run(argc, argv, [&] {
    if (!list) return report_on(program, wanted);
    for (const System& system : systems) std::cout << system.name << '\n';
    return 0;
  });
}
