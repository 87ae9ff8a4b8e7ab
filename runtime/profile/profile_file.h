// The file of one rank's profile: rank_<R>.npprof (docs/formats/profile.md).
//
//   file = line of JSON: the header | blocks
//   block = type (4 bytes) | payload bytes (4 bytes) | payload
//
// Little-endian. Blocks are appended whole by the writer of a rank; a file that ends in the middle
// of a block lost what came after the last whole one, as after SIGKILL, and is read up to there.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_RUNTIME_PROFILE_PROFILE_FILE_H_
#define NPUMESH_RUNTIME_PROFILE_PROFILE_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/profile/span.h"

namespace npumesh {

inline constexpr int kProfileVersion = 1;

// Who wrote the file, and on which clock.
struct ProfileOwner {
  int rank = 0;
  int world_size = 1;
  int node = 0;  // number of the host in the world
  int local_rank = 0;
  int process = 0;  // pid
  std::string host;
  std::string boot_id;  // ranks with equal ones share CLOCK_MONOTONIC
  int64_t start_monotonic_ns = 0;
  int64_t start_realtime_ns = 0;  // the same moment
  std::string command;            // what ran, for people
  std::string version;            // of npumesh
  // As the options asked (graph/config/system_options.h).
  bool training_trace = false;
  bool task_trace = true;
  std::string fp_point;  // operator names; empty: none
  std::string bp_point;
};

// What spans are about, by its id.
struct ProfiledTask {
  uint32_t id = 0;    // from 1
  std::string name;   // of the node, the call, the copy's direction ("host to device")
  std::string type;   // operator type, of fused ones "MatMul+Add"; empty for calls
  std::string state;  // "static" or "dynamic" shapes; empty: none
  std::string graph;  // name of the model; empty: none
  // By operand: "4,768"; dtypes as Ascend names them (FLOAT, DT_BF16 ..), formats (ND ..).
  std::vector<std::string> input_shapes, input_types, input_formats;
  std::vector<std::string> output_shapes, output_types, output_formats;
  double flops = 0;    // of one call; 0: unknown
  uint64_t bytes = 0;  // read and written by one call; 0: unknown
  std::string kernel;  // which implementation was chosen; empty: unknown
  // Of a collective or a message.
  std::string data_type;
  uint64_t count = 0;
  std::string algorithm;
  int peer = -1;  // world rank; -1: none
};

struct ProfiledGroup {
  uint32_t id = 0;      // in this file, from 1
  uint64_t number = 0;  // equal on all members
  std::string name;
  std::vector<int> world_ranks;  // by group rank
};

// How this host's clock relates to that of node 0: at `local_ns` here it was `local_ns + offset_ns`
// there, give or take `bound_ns` (half of a round trip).
struct ClockSample {
  int64_t local_ns = 0;
  int64_t offset_ns = 0;
  int64_t bound_ns = 0;
};

// Everything that one file says.
struct RankProfile {
  ProfileOwner owner;
  std::vector<ProfiledTask> tasks;    // tasks[id - 1]
  std::vector<ProfiledGroup> groups;  // groups[id - 1]
  std::vector<ClockSample> clocks;    // from the start and the end of the run; node 0 has none
  std::vector<Span> spans;            // of one thread in the order in which they ended; no packs
  uint64_t lost_full = 0;             // spans that came when the ring was full
  uint64_t lost_limit = 0;            // spans that the limit of the file had no room for
  bool ended = false;                 // false: the rank was killed or still runs

  // REQUIRES: the span has a subject.
  const ProfiledTask& task(const Span& span) const { return tasks[span.subject - 1]; }
  const ProfiledGroup& group(const Span& span) const { return groups[span.group - 1]; }
};

// Name of a rank's file in the folder of a profile.
std::string ProfileFileName(int rank);

// Error (kCorrupt): no profile, another version, or damaged; names the file and the byte. Ids that
// spans name exist in the result.
Result<RankProfile> ReadRankProfile(const std::string& path);

// All rank_*.npprof of a folder, by rank. Errors: kNotFound without any; kCorrupt when two ranks of
// different worlds are there.
Result<std::vector<RankProfile>> ReadProfiles(const std::string& folder);

// For the writer: the header, and blocks.
std::string ProfileHeader(const ProfileOwner& owner);
std::string TaskBlock(const ProfiledTask& task);
std::string GroupBlock(const ProfiledGroup& group);
std::string ClockBlock(const ClockSample& sample);
std::string SpansBlock(const Span* spans, size_t count);
std::string EndBlock(uint64_t lost_full, uint64_t lost_limit);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_PROFILE_PROFILE_FILE_H_
