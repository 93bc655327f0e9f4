// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Saved tables: costs of collectives, with their checksum mended too, gains of packing, and paths
// of strided messages. Every input is given to all readers.

#include <sstream>
#include <string>

#include <heddle/core/random.hpp>
#include <heddle/layout/pack_table.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/plan/cost_table.hpp>

#include "support.hpp"

using namespace heddle;

namespace {

void read_costs(const std::string& content) {
  fuzz::accepts([&] {
    const plan::CostTable table = plan::CostTable::parse(content);
    const std::string once = table.to_text();
    fuzz::check(plan::CostTable::parse(once).to_text() == once,
                "the costs read differently once written");
  });
}

template <class Read>
void read_table(const std::string& content, Read&& read) {
  fuzz::accepts([&] {
    std::istringstream in(content);
    const auto table = read(in);
    std::stringstream once;
    once << table;
    fuzz::check(read(once) == table, "the table reads differently once written");
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string content(fuzz::text_of(data, size));
  read_costs(content);
  if (const std::size_t end = content.find('\n'); end != std::string::npos) {
    const std::string lines = content.substr(end + 1);
    std::ostringstream sealed;
    sealed << "heddle-costs 1 " << std::hex << fnv1a(lines) << '\n' << lines;
    read_costs(sealed.str());
  }
  read_table(content, PackTable::read);
  read_table(content, PathTable::read);
  return 0;
}
