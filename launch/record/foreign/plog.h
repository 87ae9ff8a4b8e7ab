// The lines that HCCL leaves in CANN's logs (plog) and in what programs print:
//
//   Entry-HcclCommInit..: ranks[4], rank[2], .. identifier[G]       who is in which group
//   .. execTimeOut[1836], HCCL_EXEC_TIMEOUT .. [1836]               how long a call may wait
//   Entry-HcclAllReduce: tag[..], .. count[256], dataType[float32]  a call (HCCL_ENTRY_LOG_ENABLE)
//   Task run failed, base information is .. tag[AllReduce_G..]      a call that timed out: three or
//   .. groupRank information is group:[G], .. rankSize[4], rankId[2]   four lines
//   .. opData information is .. index[21], count[256], ..
//   EI0002: .. remote rank: [3]. .. tag[..] .. group:[G] .. rankId[6]  the same in one line
//   EI0006: .. Getting socket times out ..; createLink para:rank[7]-.. remoteRank[15]-..
//   [HCCL_TRACE]rank:IP/ID, count of currently executed operators:N    a rank that stands still
//   [HeartbeatAbnormal]local rank [IP/ID]: crimer rank [IP/ID] status[LOST] by informer rank [..]
//   Cluster Exception Location[IP/ID]:[IP/ID], .. ExceptionType:[Stuck Occurred], ..
//
// as hcomm's handler of task exceptions and its heartbeat write them and the pages on HCCL's errors
// explain them. A process is known by its number and its file's folder, a rank by its place in the
// largest group, else by [rankN] in front of the line, else by the order of IP/ID. The times of a
// log have no zone; they are taken as UTC.
#ifndef NPUMESH_LAUNCH_RECORD_FOREIGN_PLOG_H_
#define NPUMESH_LAUNCH_RECORD_FOREIGN_PLOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/record/record_file.h"

namespace npumesh {

// What HCCL told about a call.
struct PlogCall {
  std::string operation;          // "AllReduce"; empty: not told
  std::optional<uint64_t> index;  // in its group, from 0
  uint64_t count = 0;
  std::string dtype;
  std::string reduction;
  int64_t time_ns = 0;             // when it timed out, or was called
  std::optional<uint64_t> remote;  // rank in the group that it waited for
};

struct PlogMembership {
  uint64_t rank = 0;
  uint64_t size = 0;
};

struct PlogProcess {
  std::string folder;
  uint64_t number = 0;
  int torch_rank = -1;  // of "[rank3]:"
  std::string place;    // "IP/ID"
  std::map<std::string, PlogMembership> groups;
  std::map<std::string, PlogCall> failures;  // the first of each group
  std::map<std::string, std::vector<PlogCall>> calls;
  int64_t no_socket_ns = -1;          // EI0006 without a call; -1: none
  int64_t disagrees_ns = -1;          // EI0005
  int64_t timeout_s = 0;              // HCCL_EXEC_TIMEOUT; 0: not told
  std::optional<uint64_t> operators;  // how many it has run while it stands still
};

// A rank that the heartbeat of another found wrong.
struct PlogEvent {
  int64_t time_ns = 0;
  std::string status;    // "LOST", "STUCK", "ERROR CQE"
  std::string culprit;   // "IP/ID"
  std::string informer;  // the same; empty: not told
};

struct PlogFacts {
  std::map<std::pair<std::string, uint64_t>, PlogProcess> processes;  // by folder and number
  std::map<std::pair<std::string, std::string>, PlogEvent> events;    // by culprit and status
};

// True for a text with lines of HCCL that this reader knows.
bool LooksLikePlog(std::string_view text);

// Collects the lines of all files of a job. Thread-safety: one thread.
class PlogReader {
 public:
  // `path` of the file; files of one host lie in one folder, or in its folders run/, debug/, plog/.
  void Read(std::string_view text, const std::string& path);

  const PlogFacts& facts() const { return facts_; }

 private:
  PlogProcess* ProcessOf(std::string_view line);
  void ReadLine(std::string_view line);
  void ReadCall(std::string_view line, PlogProcess& process);
  void ReadHeartbeat(std::string_view line, PlogProcess& process);
  void ReadException(std::string_view line);
  void AddEvent(PlogEvent event);
  void ReadFailure(std::string_view line, PlogProcess& process);
  void CloseDraft();

  PlogFacts facts_;
  std::string folder_;  // of the file that is read
  size_t calls_ = 0;
  // A failed task, whose lines come one after the other.
  PlogCall draft_;
  std::string draft_group_;
  PlogProcess* draft_process_ = nullptr;
};

// The records of all ranks that the lines name; empty: none did. `folder` is for messages.
std::vector<RankRecord> PlogRecords(const PlogFacts& facts, const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_FOREIGN_PLOG_H_
