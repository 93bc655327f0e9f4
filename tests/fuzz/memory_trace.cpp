// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Traces of memory: the text of a Trace, with its checksum mended too, and the events that
// libheddle_malloc.so writes.

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <unistd.h>

#include <heddle/core/checksum.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/trace/trace.hpp>

#include "../../tools/memory/read_events.hpp"
#include "support.hpp"

using namespace heddle;

namespace {

void parse(const std::string& content) {
  fuzz::accepts([&] {
    const memory::Trace trace = memory::Trace::parse(content, "input");
    static_cast<void>(trace.peak());
    fuzz::check(memory::Trace::parse(trace.content(), "input") == trace,
                "the trace reads differently once written");
  });
}

/// Returns the lines of `content` with a last line that has their checksum.
std::string sealed(std::string content) {
  const std::size_t last = content.rfind("checksum ");
  content.resize(last == std::string::npos ? content.size() : last);
  return text(content, "checksum ", crc32c(std::as_bytes(std::span(content))), '\n');
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string content(fuzz::text_of(data, size));
  if (!content.starts_with(heddle_malloc::raw_magic)) {
    parse(content);
    parse(sealed(content));
    return 0;
  }
  const std::string path =
      text(std::filesystem::temp_directory_path().string(), "/heddle-fuzz-", ::getpid());
  std::ofstream(path, std::ios::binary) << content;
  fuzz::accepts([&] { parse(memory_tool::read_events(path).content()); });
  std::filesystem::remove(path);
  return 0;
}
