// LaunchNote: how a job ended, as the command saw it that started its ranks. It lies beside the
// flight records, as launch.json (docs/formats/flight_record.md), because a rank that is ended from
// outside cannot say so.
#ifndef NPUMESH_LAUNCH_RECORD_LAUNCH_NOTE_H_
#define NPUMESH_LAUNCH_RECORD_LAUNCH_NOTE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// A rank that a signal has ended.
struct RankDeath {
  int rank = -1;  // -1: the launcher did not tell which
  int signal = 0;
  friend bool operator==(const RankDeath&, const RankDeath&) = default;
};

struct LaunchNote {
  int exit_code = 0;
  int timeout_s = 0;              // of --timeout, when that ended the job; 0: it did not
  int signal = 0;                 // that asked the command to end the job; 0: none did
  std::vector<RankDeath> deaths;  // the first one first
  int64_t end_realtime_ns = 0;    // CLOCK_REALTIME

  // The job was ended from outside, with all its ranks.
  bool ended_from_outside() const { return timeout_s != 0 || signal != 0; }
};

// "SIGKILL"; "signal 63" for one without a name.
std::string SignalText(int signal);

// Removes the note of an earlier job, if there is one. Errors name the file.
Status RemoveLaunchNote(const std::string& folder);

// Errors name the file. A folder that is not there is no error: no rank has made a record.
Status WriteLaunchNote(const std::string& folder, const LaunchNote& note);

// Nullopt: no such file. Error: kCorrupt for a file that cannot be such a note.
Result<std::optional<LaunchNote>> ReadLaunchNote(const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_LAUNCH_NOTE_H_
