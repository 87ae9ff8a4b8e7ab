// What the vendor's tables and timelines have in common: the work of a rank as rows, with the names
// and numbers that they all use for it.
//
// Thread-safety: VendorRowsOf is a pure function; what it returns points into the profile, which
// must outlive it and stay as it is.
#ifndef NPUMESH_RUNTIME_MSPROF_VENDOR_ROWS_H_
#define NPUMESH_RUNTIME_MSPROF_VENDOR_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/msprof/rank_times.h"

namespace npumesh {

// Work of the device that is no communication: an operator, or a copy on a stream.
struct TaskRow {
  const Span* span = nullptr;
  const ProfiledTask* task = nullptr;
  bool copy = false;
  uint64_t task_id = 0;           // from 0, by begin
  int64_t wait_ns = 0;            // copies: 0
  std::optional<uint64_t> model;  // from 1; nullopt: of no graph
  std::optional<size_t> step;     // index in RankTimes::steps

  int64_t duration_ns() const { return DurationOf(*span); }
};

// A collective or a message.
struct CallRow {
  const Span* span = nullptr;
  const ProfiledTask* task = nullptr;
  std::string_view kind;  // vendor_names.h
  std::string name;       // unique in the rank, equal on all members of the group
  size_t group = 0;       // index in VendorRows::groups
  int peer = -1;          // group rank; -1: all others
  CallTimes times;
  std::optional<uint64_t> model;
  std::optional<size_t> step;

  int64_t duration_ns() const { return times.waiting_ns + times.moving_ns; }
  bool message() const;  // of kind send, receive or batchsendrecv
};

// A group in which the rank communicated. Members by group rank.
struct GroupRow {
  ProfiledGroup group;
  std::string id;
  uint64_t hash = 0;
  int own = 0;                  // group rank of the writer
  std::vector<bool> same_node;  // by group rank: whether it runs on the writer's node
};

// What the program asked for: an iteration, a call of the C interface, making a plan, a copy that
// the caller waited for.
struct HostRow {
  const Span* span = nullptr;
  std::string name;
  std::string_view level;  // "acl", "model", "communication", "runtime"

  int64_t duration_ns() const { return DurationOf(*span); }
};

struct VendorRows {
  const RankProfile* profile = nullptr;
  RankTimes times;
  std::vector<TaskRow> tasks;  // each list by begin
  std::vector<CallRow> calls;
  std::vector<HostRow> host;
  std::vector<GroupRow> groups;
  int device = 0;

  const ProfileOwner& owner() const { return profile->owner; }
  const GroupRow& group(const CallRow& call) const { return groups[call.group]; }
};

// `nodes`: number of the node by world rank. A rank that it does not have counts as one of the
// writer's node.
VendorRows VendorRowsOf(const RankProfile& profile, const std::vector<int>& nodes);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_VENDOR_ROWS_H_
