// BenchOptions: what `npumesh bench` measures. Letters, meanings and defaults are those of
// hccl_test; what it does not have comes after.
#ifndef NPUMESH_LAUNCH_BENCH_BENCH_OPTIONS_H_
#define NPUMESH_LAUNCH_BENCH_BENCH_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/status.h"
#include "runtime/world/transport.h"

namespace npumesh {

// The command line, as typed.
struct BenchWords {
  std::string operation = "all";
  std::string min_bytes = "64M";
  std::string max_bytes = "64M";
  std::string step_bytes;   // empty: a tenth of the range
  std::string step_factor;  // wins over step_bytes
  std::string iterations = "20";
  std::string warm_ups = "10";
  std::string reduce_op = "sum";
  std::string dtype = "fp32";
  std::string root = "0";
  std::string check = "1";
  std::string npus;  // empty: not said
  std::string rounds = "3";
  std::string rotate = "1";
  std::string baseline = "on";
  std::string api = "hccl";
  bool barrier = false;
  bool floor = false;
  bool algorithms = false;
  std::string json;
};

// Where ours is called: at the C interface, each call with a stream synchronisation, or below it.
enum class BenchApi { kHccl, kCommunicator };
std::string_view Name(BenchApi api);

enum class CheckMode { kNone = 0, kQuiet = 1, kVerbose = 2 };

struct BenchOptions {
  std::string operation;
  std::vector<uint64_t> sizes;  // bytes, ascending
  uint64_t max_bytes = 0;       // as asked; the last size may be less
  int iterations = 20;
  int warm_ups = 10;
  ReduceOp reduce_op = ReduceOp::kSum;
  DataType dtype = DataType::kFloat;
  std::string dtype_name = "fp32";  // as typed
  int root = 0;
  CheckMode check = CheckMode::kQuiet;
  std::optional<int> npus;  // devices of a host
  int rounds = 3;           // how often ours and MPI's take turns
  int rotate = 1;           // buffers in turn, so that a large message is not in the cache
  bool baseline = true;
  BenchApi api = BenchApi::kHccl;
  bool barrier = false;  // ranks meet before each iteration
  bool floor = false;    // the least that the machine takes is measured, too
  bool algorithms = false;
  std::string json;
};

// Errors name option, value and what is accepted.
Result<BenchOptions> ParseBench(const BenchWords& words);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_BENCH_BENCH_OPTIONS_H_
