// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core
// together: 3
// package: core

/// @file
/// The program `elastic`: starts a job on ranks, and when it fails starts it again on fewer ranks,
/// from its newest checkpoint that is whole.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/internal/locked_file.hpp>
#include <heddle/core/text.hpp>

#include "../common/command_line.hpp"
#include "checkpoints.hpp"
#include "job.hpp"

namespace {

struct Settings {
  int ranks = 0;
  int least = 1;
  int retries = 10;
  std::vector<double> final_statuses = {2};
  std::string checkpoint;
  std::string hosts;
  std::string probe;
  std::vector<std::string> command;
};

/// Returns `words` with each `{name}` replaced.
std::vector<std::string> filled(std::vector<std::string> words,
                                const std::vector<std::pair<std::string, std::string>>& names) {
  for (std::string& word : words)
    for (const auto& [name, value] : names)
      for (std::size_t at = 0; (at = word.find(name, at)) != std::string::npos; at += value.size())
        word.replace(at, name.size(), value);
  return words;
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> words;
  for (bool more = !list.empty(); more;) {
    const std::size_t comma = list.find(',');
    words.emplace_back(list.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
  }
  return words;
}

/// The ranks of the job and its hosts, which lose members.
class Ranks {
 public:
  Ranks(const Settings& settings, const tool::CommandLine& program)
      : m_settings(settings), m_ranks(settings.ranks), m_hosts(split(settings.hosts)) {
    if (settings.ranks < 1 || settings.least < 1 || settings.least > settings.ranks)
      throw program.error(heddle::text("--ranks ", settings.ranks, " --least ", settings.least),
                          "both are at least 1, and --least is at most --ranks");
    if (settings.retries < 0)
      throw program.error(heddle::text("--retries ", settings.retries), "it is at least 0");
    if (settings.probe.empty() != settings.hosts.empty())
      throw program.error("--probe and --hosts belong together",
                          "without both, each restart has one rank less");
    const int hosts = static_cast<int>(m_hosts.size());
    if (hosts > 0 && settings.ranks % hosts != 0)
      throw program.error(heddle::text("--ranks ", settings.ranks, " on ", hosts, " hosts"),
                          "the hosts divide the ranks");
    if (hosts > 0) m_slots = settings.ranks / hosts;
  }

  [[nodiscard]] int count() const { return m_ranks; }
  /// Returns "a:2,b:2", or nothing without hosts.
  [[nodiscard]] std::string hosts() const {
    std::string list;
    for (const std::string& host : m_hosts)
      list += heddle::text(list.empty() ? "" : ",", host, ":", m_slots);
    return list;
  }

  /// Drops the hosts that do not answer, or one rank if there is no probe.
  void shrink() {
    if (m_hosts.empty()) {
      --m_ranks;
      return;
    }
    std::erase_if(m_hosts, [&](const std::string& host) {
      const auto command = filled({"sh", "-c", m_settings.probe}, {{"{host}", host}});
      const bool dead = elastic::run_job(command).status != 0;
      if (dead) std::cerr << "elastic: host " << host << " does not answer\n";
      return dead;
    });
    m_ranks = static_cast<int>(m_hosts.size()) * m_slots;
  }

 private:
  const Settings& m_settings;
  int m_ranks;
  int m_slots = 0;
  std::vector<std::string> m_hosts;
};

/// Returns the checkpoint to start from, after a line about it.
elastic::Choice announced_start(const Settings& settings, int ranks) {
  for (const std::string& file : elastic::remove_leftovers(settings.checkpoint))
    std::cerr << "elastic: removed " << file << ", which a killed writer left\n";
  elastic::Choice choice = elastic::choose_checkpoint(settings.checkpoint);
  for (const std::string& damage : choice.damaged)
    std::cerr << "elastic: skips a damaged checkpoint: " << damage << '\n';
  std::cerr << "elastic: starts " << ranks << (ranks == 1 ? " rank" : " ranks") << " from "
            << (choice.file.empty() ? "the start" : choice.file)
            << (choice.step.empty() ? "" : ", " + choice.step) << '\n';
  return choice;
}

/// Runs the job until it succeeds or cannot go on; returns its last status.
int run(const Settings& settings, const tool::CommandLine& program) {
  if (settings.command.empty()) throw program.error("there is no command", "write it behind --");
  if (settings.checkpoint.empty()) throw program.error("--checkpoint is required");
  Ranks ranks(settings, program);
  // The lock needs a folder, which otherwise the job may create. PathLock reports a failure.
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(settings.checkpoint).parent_path(),
                                      error);
  const heddle::impl::PathLock owner("elastic",
                                     heddle::text("the checkpoint '", settings.checkpoint, "'"),
                                     settings.checkpoint + ".elastic");
  for (int failures = 0;;) {
    const elastic::Choice start = announced_start(settings, ranks.count());
    const elastic::Ended ended =
        elastic::run_job(filled(settings.command, {{"{ranks}", heddle::text(ranks.count())},
                                                   {"{hosts}", ranks.hosts()},
                                                   {"{checkpoint}", start.file}}));
    if (ended.status == 0 || ended.interrupted != 0) {
      (void)elastic::remove_leftovers(settings.checkpoint);
      if (ended.interrupted == 0) return 0;
      std::cerr << "elastic: ends, because signal " << ended.interrupted << " asked for it\n";
      return ended.status != 0 ? ended.status : 128 + ended.interrupted;
    }
    std::cerr << "elastic: the job on " << ranks.count() << " ranks ended with status "
              << ended.status << '\n';
    const auto stop = [&](const std::string& why) {
      (void)elastic::remove_leftovers(settings.checkpoint);
      std::cerr << "elastic: gives up, because " << why << '\n';
      return ended.status;
    };
    if (std::ranges::find(settings.final_statuses, ended.status) != settings.final_statuses.end())
      return stop("fewer ranks do not change this status (--final)");
    // The statuses by which shells and launchers say that a command cannot be executed or found.
    if (ended.status == 126 || ended.status == 127)
      return stop("the command, or one that it starts, cannot be found or executed");
    if (++failures > settings.retries)
      return stop(heddle::text("it has restarted ", settings.retries, " times (--retries)"));
    ranks.shrink();
    if (ranks.count() < settings.least)
      return stop(heddle::text(ranks.count(), " ranks are left, --least ", settings.least));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  tool::CommandLine program(
      "elastic",
      "Starts COMMAND, which stands behind --, and if it fails starts it again on fewer ranks from "
      "its newest whole checkpoint. The status is that of the last run.");
  program.add_option("ranks", &settings.ranks, "ranks of the first run");
  program.add_option("least", &settings.least,
                     "least number of ranks with which the job is started");
  program.add_option("retries", &settings.retries, "most restarts");
  program.add_option("checkpoint", &settings.checkpoint,
                     "FILE that the job saves; it alternates between FILE and FILE.2");
  program.add_option("final", &settings.final_statuses,
                     "statuses that fewer ranks do not change, such as 2,3");
  program.add_option("hosts", &settings.hosts, "hosts of the ranks, a,b,c; for --probe");
  program.add_option(
      "probe", &settings.probe,
      "shell command that succeeds if {host} lives; without it, each restart has one "
      "rank less");
  program.set_note([] {
    return std::string(
        "In COMMAND, {ranks} becomes the number of ranks, {hosts} the living hosts and their ranks "
        "(a:2,b:2), and {checkpoint} the file to resume from, or an empty argument if there is "
        "none "
        "yet:\n\n  elastic --ranks 4 --checkpoint run.ckpt -- mpiexec -n {ranks} train_gpt --pipe "
        "{ranks} --end 1000 --save run.ckpt --save-every 20 --resume {checkpoint}\n");
  });
  const auto separator = std::find(argv, argv + argc, std::string_view("--"));
  if (separator != argv + argc) settings.command.assign(separator + 1, argv + argc);
  return program.run(static_cast<int>(separator - argv), argv,
                     [&] { return run(settings, program); });
}
