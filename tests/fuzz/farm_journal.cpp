// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Journals of a farm: FarmJournal opens a file of the input.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/farm_journal.hpp>

#include "sealed.hpp"
#include "support.hpp"

using namespace heddle;

namespace {

void read(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
  fuzz::accepts([&] {
    std::size_t items = 0;
    {
      pattern::FarmJournal journal(path, "squares");
      items = journal.size();
      std::int64_t next = 0;  // a number that no item has
      for (; next <= static_cast<std::int64_t>(items); ++next) try {
          if (!journal.take(next, 0)) break;
        } catch (const format_error&) {  // the journal has another checksum of the item
        }
      journal.note(next, 7, {});
    }
    fuzz::check(pattern::FarmJournal(path, "squares").size() == items + 1,
                "a journal that was accepted does not have an item more after note()");
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string path =
      text(std::filesystem::temp_directory_path().string(), "/heddle-fuzz-", ::getpid());
  const std::string_view content = fuzz::text_of(data, size);
  read(path, content);
  read(path, fuzz::sealed(content));
  std::filesystem::remove(path);
  return 0;
}
