// The ways to compile and run a graph that must not change a result.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_OPTION_SETS_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_OPTION_SETS_H_

#include <string>
#include <vector>

#include "graph/session/session.h"

namespace npumesh::fuzz {

struct OptionSet {
  std::string name;
  SessionOptions options;
  bool observed = false;   // by an observer: nothing is fused
  bool read_back = false;  // the model passes through the bytes of an .air file first
  bool lent = false;       // on memory of the caller (Session::RunInto)
  bool guarded = false;    // a MemoryGuard looks on, and trusts no operator
};

// The first one is what a session does where nothing is configured.
const std::vector<OptionSet>& OptionSets();

// With static kernels, which a compiler builds for each graph: some tenths of a second for a seed,
// so it stands by itself. Store and records lie in a new folder, which the process that asked first
// removes when it ends.
const OptionSet& StaticKernelSet();

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_OPTION_SETS_H_
