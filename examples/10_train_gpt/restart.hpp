// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a training needs that may be killed and started again (tools/elastic): two files for its
/// checkpoints, the steps that are left, and a way to be killed in tests.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pipeline/checkpoint_saver.hpp>

#include "gpt_checkpoint.hpp"
#include "gpt_training.hpp"
#include "settings.hpp"
#include "text.hpp"

namespace examples {

/// The files of checkpoints: always --save, or with --save-every FILE and FILE.2 in turns. The file
/// that the training resumed from is not the first that is replaced, and a save that failed is
/// followed by one to the same file. A thread writes a checkpoint while the next steps run.
class SaveFiles {
 public:
  explicit SaveFiles(const Settings& s)
      : m_file(s.save),
        m_every(s.save_every),
        m_two(s.save_every > 0),
        m_options{.watchdog = s.watchdog},
        m_saver(s.resume) {
    heddle::expects(s.save_every >= 0 && (!m_two || !m_file.empty()), [&] {
      return heddle::ErrorInfo{
          "command line", "--save-every needs a number of steps and --save",
          heddle::text("--save-every ", s.save_every, " --save '", m_file, "'")};
    });
    std::error_code neither_exists;
    m_second = m_two && std::filesystem::equivalent(s.resume, s.save, neither_exists);
  }

  /// Returns whether there is a checkpoint before step `step`, which is not the last one.
  [[nodiscard]] bool is_due(int step) const { return m_two && step % m_every == 0; }

  /// Waits for the previous save, and begins to save `model` as it is before step `step`. All ranks
  /// call it; the first one writes.
  template <class Real, class Place>
  void save(Gpt<Real>& model, Place& mesh, const GptTraining& training, const Text& text,
            int step) {
    if (!wait(mesh) && mesh.rank() == heddle::Rank{0})
      std::cerr << "train_gpt: the training goes on: " << m_saver.failure() << std::endl;
    m_saver.save(m_second ? m_file + ".2" : m_file, model, mesh, fields(training, text, step),
                 m_options);
    m_pending = true;
  }

  /// Saves `model` at the end of the steps, if --save is given, and waits for it.
  template <class Real, class Place>
  void save_end(Gpt<Real>& model, Place& mesh, const GptTraining& training, const Text& text,
                int step) {
    if (m_file.empty()) return;
    save(model, mesh, training, text, step);
    if (wait(mesh) && mesh.rank() == heddle::Rank{0})
      std::cout << "saved before step " << step << ": " << m_saver.newest_path() << '\n';
  }

  /// Throws format_error, on all ranks, if the last save failed.
  void expect_saved() const {
    if (!m_saver.failure().empty())
      throw heddle::format_error({"checkpoint", "the last save failed", m_saver.failure(),
                                  "resume from the newest checkpoint that is whole"});
  }

 private:
  /// Waits for the pending save. Returns whether it succeeded.
  template <class Place>
  bool wait(Place& mesh) {
    if (!m_pending) return true;
    m_pending = false;
    if (!m_saver.wait(mesh, m_options)) return false;
    m_second = m_two && !m_second;
    return true;
  }

  std::string m_file;
  int m_every;
  bool m_two;
  bool m_second = false;
  bool m_pending = false;
  heddle::ExecuteOptions m_options;
  heddle::CheckpointSaver m_saver;
};

/// The steps of a training.
struct Steps {
  int begin = 0;  ///< the first one; those before were trained by the run that saved
  int count = 0;  ///< 0 or less if the training is at its end
};

/// Gives `model` what --resume names, and returns the steps that --end or --steps leave. Rank 0
/// prints what it resumes from. Collective over `place`. @throws format_error as resume().
template <class Real, class Place>
[[nodiscard]] Steps steps_of(const Settings& s, Gpt<Real>& model, Place& place,
                             const GptTraining& training, const Text& text) {
  const int begin = s.resume.empty() ? 0 : resume<Real>(s.resume, model, place, training, text);
  const Steps steps{begin, s.end > 0 ? s.end - begin : s.steps};
  if (place.rank() != heddle::Rank{0}) return steps;
  if (begin > 0) std::cout << "resumed before step " << begin << '\n';
  if (steps.count < 1) std::cout << "already trained up to step " << begin << '\n';
  return steps;
}

/// For tests: if the environment's TRAIN_GPT_KILL is "RANK STEP MICROSECONDS step", that rank is
/// killed so long after the begin of that step, or of a later one if the training resumes behind
/// it. With "save" in place of "step", it is killed so long after the begin of the save behind it.
inline void kill_in_tests(const std::string& place, int rank, int step) {
  const char* const told = std::getenv("TRAIN_GPT_KILL");
  if (told == nullptr) return;
  std::istringstream words(told);
  int who = -1, when = -1, microseconds = 0;
  std::string where;
  words >> who >> when >> microseconds >> where;
  if (who != rank || step < when || where != place) return;
  std::thread([microseconds] {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    (void)std::raise(SIGKILL);
  }).detach();
}

}  // namespace examples
