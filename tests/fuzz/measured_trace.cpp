// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::json nlohmann_json::nlohmann_json
// with: tools/plan/measured.cpp

// Traces of steps that `plan error` compares: the steps of 1F1B on two ranks, also with the
// checksum of the events mended.

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/trace/impl/json.hpp>

#include "../../tools/plan/measured.hpp"
#include "support.hpp"

using namespace heddle;

namespace {

void read(const std::string& path, const std::string& content) {
  static const Schedule schedule = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  std::ofstream(path, std::ios::binary) << content;
  fuzz::accepts([&] {
    const Timeline timeline = tool::measured_timeline(path, schedule);
    for (std::size_t i = 0; i < schedule.size(); ++i)
      fuzz::check(timeline[ActionId{i}].start <= timeline[ActionId{i}].end &&
                      timeline[ActionId{i}].end <= timeline[ActionId{i}].arrival,
                  "an action ends before it starts");
  });
}

/// Returns the trace with the checksum of its events.
std::string sealed(std::string content) {
  const std::size_t begin = content.find('[', content.find("\"traceEvents\":"));
  const std::size_t end = content.rfind(']');
  constexpr std::string_view member = "\"checksum\":\"";
  const std::size_t sum = content.find(member);
  if (end == std::string::npos || begin >= end || sum == std::string::npos ||
      content.size() - sum < member.size() + 16)
    return content;
  const std::string is =
      trace::impl::hex_text(fnv1a(std::string_view(content).substr(begin, end + 1 - begin)));
  return content.replace(sum + member.size(), is.size(), is);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string path =
      text(std::filesystem::temp_directory_path().string(), "/heddle-fuzz-", ::getpid());
  const std::string content(fuzz::text_of(data, size));
  read(path, content);
  read(path, sealed(content));
  std::filesystem::remove(path);
  return 0;
}
