// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a system of the report returns, and the systems that there are.

#include <string>
#include <vector>

namespace report {

/// One line of a system, without its name.
struct Comparison {
  std::string what;
  std::string published;
  std::string ours;
  std::string bar;
  std::string verdict;
};

inline constexpr const char* holds = "holds";
inline constexpr const char* falls_short = "falls short";

inline std::string verdict(bool good) { return good ? holds : falls_short; }

/// Returns the verdict of a line that is printed without a bar, because nothing could judge it: it
/// holds by construction, or it has no independent reference.
inline std::string not_judged(const std::string& why) { return "not judged: " + why; }

inline constexpr const char* no_reference = "no independent reference";

std::vector<Comparison> gpipe();
std::vector<Comparison> one_f_one_b();
std::vector<Comparison> interleaved();
std::vector<Comparison> chimera();
std::vector<Comparison> dapple_planner();
std::vector<Comparison> dapple_runtime();
std::vector<Comparison> energon();
std::vector<Comparison> flexpipe();
std::vector<Comparison> hap();
std::vector<Comparison> hgtrainer();
std::vector<Comparison> metis();
std::vector<Comparison> ada_grouper();
std::vector<Comparison> pipedream_planner();
std::vector<Comparison> pipedream_runtime();
std::vector<Comparison> zero_bubble();
std::vector<Comparison> dualpipe();
std::vector<Comparison> distrifusion();
std::vector<Comparison> parscale();
std::vector<Comparison> pathways();
std::vector<Comparison> pcpp();
std::vector<Comparison> mpirigen();
std::vector<Comparison> tpi_llm_star();
std::vector<Comparison> tpi_llm_window();
std::vector<Comparison> t3();
std::vector<Comparison> tempi();
std::vector<Comparison> sw_alloc();
std::vector<Comparison> two_bp();
std::vector<Comparison> c4();
std::vector<Comparison> co2();
std::vector<Comparison> exflow();
std::vector<Comparison> flow_splitting();
std::vector<Comparison> hybrid_balance();
std::vector<Comparison> low_bandwidth();
std::vector<Comparison> grad_sign();
std::vector<Comparison> graph_balance();
std::vector<Comparison> aiperf();
std::vector<Comparison> photons();
std::vector<Comparison> pim_gpt();
std::vector<Comparison> lpd();
std::vector<Comparison> dsp();
std::vector<Comparison> flexsp();
std::vector<Comparison> frontier_3d();
std::vector<Comparison> holmes();
std::vector<Comparison> nano_flow();
std::vector<Comparison> unified();
std::vector<Comparison> fixed_point();
std::vector<Comparison> multiverse();
std::vector<Comparison> non_deep();
std::vector<Comparison> lagrangian_pinn();
std::vector<Comparison> parallel_prompt();
std::vector<Comparison> sat();
std::vector<Comparison> sn40l();
std::vector<Comparison> ring_attention();
std::vector<Comparison> rhino();
std::vector<Comparison> rsa();
std::vector<Comparison> token_ring();
std::vector<Comparison> ulysses();
std::vector<Comparison> usp();

/// One of unified()'s.
Comparison native_fraction();

}  // namespace report
