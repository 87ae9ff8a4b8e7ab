// Verify: what a kernel gave for one operator, beside what the operator computes in float64.
//
// The kernel is anybody's: it read the inputs from .npy files, or those that npumesh drew, and
// wrote its outputs as .npy files. The golden is the operator of npumesh in float64, rounded once
// to the types of the outputs; of operators that know no float64 it is their kernel.
#ifndef NPUMESH_LAUNCH_VERIFY_VERIFY_H_
#define NPUMESH_LAUNCH_VERIFY_VERIFY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/compare/measures/pattern.h"
#include "launch/report/command_report.h"
#include "launch/run/tensor_check.h"
#include "launch/run/tolerance.h"
#include "runtime/base/env/env.h"

namespace npumesh {

struct VerifyOptions {
  std::string op_file;  // one operator in the form of atc's --singleop
  std::string inputs;   // a folder with <i>.npy; empty: drawn from `seed`
  uint64_t seed = 0;
  std::string against;  // output 0 as a .npy file, or a folder with <i>.npy; empty: nothing
  std::string write;    // a folder for inputs/ and golden/; empty: nothing is written
  ToleranceOptions tolerance;
};

struct VerifiedTensor {
  int64_t index = 0;
  TensorType type;
  std::string file;    // empty: drawn
  std::string sha256;  // of the elements, in C order
};

struct VerifiedOutput {
  VerifiedTensor mine;
  AppliedTolerance tolerance;
  Difference difference;
  DifferencePattern pattern;
};

struct Verified {
  std::string op_type;
  std::string op_file;
  std::string op_sha256;  // of the file
  bool float64 = false;   // the golden was computed in float64
  std::vector<VerifiedTensor> inputs;
  std::vector<VerifiedTensor> goldens;
  std::vector<VerifiedOutput> outputs;  // that were compared

  bool matches() const;
};

// Blocks as long as the operator runs, on a device as `env` says. Errors: those of the file
// (kInvalidArgument), of its operator (kUnsupported), of inputs that are missing or do not fit
// (name the file), and of what is written.
Result<Verified> Verify(const VerifyOptions& options, const Env& env);

std::string ToText(const Verified& verified);
CommandReport ToReport(const Verified& verified);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VERIFY_VERIFY_H_
