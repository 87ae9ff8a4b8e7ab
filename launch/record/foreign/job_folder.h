// The records of a job, whichever library made them: what a folder holds is told by the content of
// its files.
#ifndef NPUMESH_LAUNCH_RECORD_FOREIGN_JOB_FOLDER_H_
#define NPUMESH_LAUNCH_RECORD_FOREIGN_JOB_FOLDER_H_

#include <optional>
#include <string>
#include <vector>

#include "launch/record/launch_note.h"
#include "launch/record/record_join.h"

namespace npumesh {

struct Job {
  std::vector<RankRecord> records;  // by rank, at least one
  std::optional<LaunchNote> note;   // of our own records
  Joined joined;                    // of both
  std::string source;               // "flight records of torch"; empty: our own
};

// Reads `path`, a folder with its folders, or a single file, and joins what is there:
//   rank_<R>.npr           our own records (docs/formats/flight_record.md); nothing else counts
//   then pickles and JSON       flight records of PyTorch, torch_npu and TorchComms, one for each
//   rank,
//                          whose number ends the file's name
//   JSON and text          reports of ncclras; of several the last one, beside the one before
//   other text             logs with lines of HCCL
// Where several kinds lie together, as in the folder hang_detector of Ray Train, the first of this
// order that finds a rank to blame counts. kNotFound: nothing of that is there. kCorrupt: a record
// cannot be read; the message names it.
Result<Job> ReadJob(const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_FOREIGN_JOB_FOLDER_H_
