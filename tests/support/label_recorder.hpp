// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LabelRecorder: notes what Kokkos Tools is told of kernels, Views, fences and regions, to test
/// their labels: a tool shows nothing else of a program.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>

namespace heddle::test {

namespace Tools = Kokkos::Tools::Experimental;

/// While it lives, it takes the place of any tool. One at a time.
class LabelRecorder {
 public:
  LabelRecorder() : m_before(Tools::get_callbacks()) {
    labels() = {};
    Tools::set_callbacks({});
    Tools::set_begin_parallel_for_callback(begin_kernel);
    Tools::set_begin_parallel_reduce_callback(begin_kernel);
    Tools::set_begin_parallel_scan_callback(begin_kernel);
    Tools::set_begin_fence_callback(begin_kernel);
    Tools::set_push_region_callback([](const char* name) { labels().insert(name); });
    Tools::set_allocate_data_callback([](const Kokkos_Profiling_SpaceHandle, const char* name,
                                         const void*,
                                         const std::uint64_t) { labels().insert(name); });
  }
  LabelRecorder(const LabelRecorder&) = delete;
  LabelRecorder& operator=(const LabelRecorder&) = delete;
  ~LabelRecorder() { Tools::set_callbacks(m_before); }

  /// Ours so far: all labels but those that Kokkos gives to what it does by itself.
  [[nodiscard]] static std::set<std::string> ours() {
    std::set<std::string> found;
    for (const std::string& label : labels())
      if (!is_of_kokkos(label)) found.insert(label);
    return found;
  }

  /// Those of ours that do not begin with heddle::ROOM:: for one of `rooms`, or end there. What has
  /// no label shows as Kokkos's default for it: the functor's type, "Unnamed ... Fence", nothing.
  [[nodiscard]] static std::vector<std::string> strangers(
      const std::vector<std::string_view>& rooms) {
    std::vector<std::string> found;
    for (const std::string& label : ours()) {
      bool at_home = false;
      for (const std::string_view room : rooms) {
        const std::string head = "heddle::" + std::string(room) + "::";
        at_home = at_home || (label.starts_with(head) && label.size() > head.size());
      }
      if (!at_home) found.push_back(label);
    }
    return found;
  }

 private:
  /// Kernels and fences alike: name, device, and a number that the tool may choose.
  static void begin_kernel(const char* name, const std::uint32_t, std::uint64_t*) {
    labels().insert(name);
  }

  /// Kokkos and its Kernels begin their labels with their own name or a memory space's.
  static bool is_of_kokkos(std::string_view label) {
    return label.find("Unnamed") == label.npos &&
           (label.starts_with("Kokkos") || label.substr(0, label.find("::")).ends_with("Space"));
  }

  static std::set<std::string>& labels() {
    static std::set<std::string> all;
    return all;
  }

  Tools::EventSet m_before;
};

}  // namespace heddle::test
