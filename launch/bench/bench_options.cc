#include "launch/bench/bench_options.h"

#include <array>
#include <utility>

#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr int64_t kMostIterations = 1'000'000;
constexpr size_t kMostSizes = 100'000;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;

// hccl_test's names; int128 has no counterpart.
constexpr std::array<std::pair<std::string_view, DataType>, 16> kTypes = {{
    {"int8", DataType::kInt8},
    {"int16", DataType::kInt16},
    {"int32", DataType::kInt32},
    {"fp16", DataType::kFloat16},
    {"fp32", DataType::kFloat},
    {"int64", DataType::kInt64},
    {"uint64", DataType::kUint64},
    {"uint8", DataType::kUint8},
    {"uint16", DataType::kUint16},
    {"uint32", DataType::kUint32},
    {"fp64", DataType::kDouble},
    {"bfp16", DataType::kBfloat16},
    {"hif8", DataType::kHifloat8},
    {"fp8e4m3", DataType::kFloat8E4M3Fn},
    {"fp8e5m2", DataType::kFloat8E5M2},
    {"fp8e8m0", DataType::kFloat8E8M0},
}};

constexpr std::array<std::pair<std::string_view, ReduceOp>, 4> kReduceOps = {{
    {"sum", ReduceOp::kSum},
    {"prod", ReduceOp::kProd},
    {"max", ReduceOp::kMax},
    {"min", ReduceOp::kMin},
}};

constexpr std::array<std::pair<std::string_view, BenchApi>, 2> kApis = {{
    {"hccl", BenchApi::kHccl},
    {"communicator", BenchApi::kCommunicator},
}};

template <typename Table>
auto Find(const Table& table, std::string_view name, std::string_view option)
    -> Result<decltype(table[0].second)> {
  std::string accepted;
  for (const auto& [known, value] : table) {
    if (known == name) return value;
    accepted += accepted.empty() ? std::string(known) : fmt::format(" {}", known);
  }
  return Error(Code::kInvalidArgument, "{}: expected one of {}; got \"{}\"", option, accepted,
               name);
}

Status ParseCount(std::string_view text, int64_t min, int64_t max, std::string_view option,
                  int& value) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t parsed, ParseInt(text, min, max, option));
  value = static_cast<int>(parsed);
  return Status();
}

Result<std::vector<uint64_t>> ParseSizes(const BenchWords& words) {
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t min, ParseBytes(words.min_bytes, "-b"));
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t max, ParseBytes(words.max_bytes, "-e"));
  if (min == 0 || min > max || max > kMostBytes) {
    return Error(Code::kInvalidArgument,
                 "-b {} and -e {}: expected 1 <= -b <= -e <= 1T; -e is 64M when it is not given",
                 words.min_bytes, words.max_bytes);
  }
  int64_t factor = 1;
  int64_t step = std::max<int64_t>(1, static_cast<int64_t>((max - min) / 10));
  if (!words.step_factor.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(factor, ParseInt(words.step_factor, 2, 1 << 20, "-f"));
    step = 0;
  } else if (!words.step_bytes.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(step, ParseInt(words.step_bytes, 1, int64_t{1} << 40, "-i"));
  }
  std::vector<uint64_t> sizes;
  for (uint64_t size = min; size <= max;
       size = size * static_cast<uint64_t>(factor) + static_cast<uint64_t>(step)) {
    if (sizes.size() == kMostSizes) {
      return Error(Code::kInvalidArgument, "-b, -e and -i make more than {} sizes", kMostSizes);
    }
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

std::string_view Name(BenchApi api) {
  return kApis[static_cast<size_t>(api)].first;
}

Result<BenchOptions> ParseBench(const BenchWords& words) {
  BenchOptions options;
  options.operation = words.operation;
  NPUMESH_ASSIGN_OR_RETURN(options.sizes, ParseSizes(words));
  NPUMESH_ASSIGN_OR_RETURN(options.max_bytes, ParseBytes(words.max_bytes, "-e"));
  NPUMESH_RETURN_IF_ERROR(
      ParseCount(words.iterations, 1, kMostIterations, "-n", options.iterations));
  NPUMESH_RETURN_IF_ERROR(ParseCount(words.warm_ups, 0, kMostIterations, "-w", options.warm_ups));
  NPUMESH_ASSIGN_OR_RETURN(options.reduce_op, Find(kReduceOps, words.reduce_op, "-o"));
  NPUMESH_ASSIGN_OR_RETURN(options.dtype, Find(kTypes, words.dtype, "-d"));
  options.dtype_name = words.dtype;
  NPUMESH_RETURN_IF_ERROR(ParseCount(words.root, 0, 1 << 20, "-r", options.root));
  int check = 1;
  NPUMESH_RETURN_IF_ERROR(ParseCount(words.check, 0, 2, "-c", check));
  options.check = static_cast<CheckMode>(check);
  if (!words.npus.empty()) {
    NPUMESH_RETURN_IF_ERROR(ParseCount(words.npus, 1, 1 << 20, "-p", options.npus.emplace()));
  }
  NPUMESH_RETURN_IF_ERROR(ParseCount(words.rounds, 1, 1000, "--rounds", options.rounds));
  NPUMESH_RETURN_IF_ERROR(ParseCount(words.rotate, 1, 1024, "--rotate", options.rotate));
  NPUMESH_ASSIGN_OR_RETURN(options.baseline, ParseBool(words.baseline, "--baseline"));
  NPUMESH_ASSIGN_OR_RETURN(options.api, Find(kApis, words.api, "--api"));
  options.barrier = words.barrier;
  options.floor = words.floor;
  options.algorithms = words.algorithms;
  options.json = words.json;
  return options;
}

}  // namespace npumesh
