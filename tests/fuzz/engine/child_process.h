// Runs something that may crash, hang or take all memory in a separate process.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_CHILD_PROCESS_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_CHILD_PROCESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace npumesh::fuzz {

struct ChildReport {
  std::vector<std::string> said;  // in order
  std::string end;                // empty: it came to its end; otherwise "signal 11", "hangs" ...
};

struct ChildLimits {
  std::chrono::seconds silence{60};            // the longest time between two messages
  uint64_t address_space = uint64_t{8} << 30;  // bytes; sanitizers need more and get no limit
};

using Say = std::function<void(const std::string& message)>;

// Forks, and waits for the child. REQUIRES: the caller has one thread.
ChildReport RunInChild(const std::function<void(const Say& say)>& body,
                       const ChildLimits& limits = {});

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_CHILD_PROCESS_H_
