// Overflow: which operators leave the range of their type, and the record that says so. Internal to
// graph/dump.
#ifndef NPUMESH_GRAPH_DUMP_STATISTICS_OVERFLOW_H_
#define NPUMESH_GRAPH_DUMP_STATISTICS_OVERFLOW_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dump/statistics/operands.h"

namespace npumesh {

inline constexpr std::string_view kOverflowType = "Opdebug";
inline constexpr std::string_view kOverflowName = "Node_OpDebug";

// One of them holds a NaN, an infinity or, as float16, a number of magnitude 65504 or more.
bool OutOfRange(const std::vector<DumpOperand>& operands);

// The 2048 bytes of a debug record: magic, version 0 and one accelerator's entry: the AI core, or
// SDMA for a collective. There is no program counter and no core; the status is 1.
std::string OverflowRecord(uint32_t model_id, uint32_t stream, uint32_t task, bool collective);

// The DumpData that such a record stands in, with one output.
DumpRecord DescribeOverflowRecord(uint64_t time_us, uint64_t bytes);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_STATISTICS_OVERFLOW_H_
