// Reports of NCCL's RAS subsystem, as its client `ncclras` prints them: text (NCCL 2.24 and later)
// or JSON (2.28 and later; 2.28.9 forgets a comma, which is mended). What they hold is laid down by
// the RAS client's source in NCCL: for each communicator how many operations of each kind its
// ranks have launched, and which processes are missing.
//
// A report counts launches and knows no order of them: of the ranks of a communicator all have
// launched the least count of each kind; what a rank has launched beyond that is the call that it
// is in. Ranks are those of the largest communicator; others find theirs by host and process.
#ifndef NPUMESH_LAUNCH_RECORD_FOREIGN_RAS_REPORT_H_
#define NPUMESH_LAUNCH_RECORD_FOREIGN_RAS_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launch/record/record_file.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// A member of a communicator.
struct RasMember {
  int rank = 0;  // in the communicator
  std::string host;
  int process = 0;
  std::map<std::string, uint64_t> launched;  // by kind; empty: not told
  int error = 0;                             // an ncclResult_t, of its setup or while it ran
  bool aborted = false;
  bool missing = false;  // it did not answer, or is not in the communicator (any more)
  bool dead = false;
};

struct RasCommunicator {
  std::string hash;
  int size = 0;
  std::vector<RasMember> members;  // those that the report names, by rank
};

struct RasReport {
  std::string version;
  std::string time;  // as the report writes it; empty: text has none
  std::vector<RasCommunicator> communicators;
  std::vector<std::string> dead;  // "process 12 on node n", of a text
};

bool LooksLikeRasText(std::string_view text);
bool LooksLikeRasJson(const nlohmann::json& object);

// JSON with the comma that NCCL 2.28.9 forgets; discarded when it is damaged otherwise.
nlohmann::json ParseRasJson(const std::string& text);

// kCorrupt names `path` and what was expected.
Result<RasReport> ReadRasText(std::string_view text, const std::string& path);
Result<RasReport> ReadRasJson(const nlohmann::json& object, const std::string& path);

// Records of the ranks that the last report names. `earlier`: the report before it, or null: a
// communicator that has gone on between the two does not wait.
std::vector<RankRecord> RasRecords(const RasReport& last, const RasReport* earlier,
                                   const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_FOREIGN_RAS_REPORT_H_
