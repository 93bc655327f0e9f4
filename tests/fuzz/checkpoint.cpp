// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checkpoints, also as stores. The two readers must agree.

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/checkpoint.hpp>
#include <heddle/tier/store.hpp>

#include "sealed.hpp"
#include "support.hpp"

using namespace heddle;

namespace {

void read(std::string_view content) {
  const bool checkpoint = fuzz::accepts([&] {
    const Checkpoint made = Checkpoint::parse(content, "input");
    fuzz::check(made.content() == content, "the checkpoint is written with other bytes");
  });
  const bool store = fuzz::accepts([&] {
    std::vector<std::byte> bytes(content.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), content.data(), content.size());
    tier::Store opened(std::make_unique<tier::MemorySource>("input", std::move(bytes)), {});
    for (std::size_t i = 0; i < opened.objects().size(); ++i) {
      std::vector<std::byte> to(opened.objects()[i].bytes);
      opened.read(tier::ObjectId{i}, to);
    }
    static_cast<void>(opened.checksum());
  });
  fuzz::check(checkpoint == store, "only one of Checkpoint and Store accepts the file");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  read(content);
  read(fuzz::sealed(content));
  return 0;
}
