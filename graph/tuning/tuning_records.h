// TuningRecords: the records of a work folder, shared by all processes that tune in it.
//
//   <work_path>/npumesh_tuning/<key>.json   a record, published by one rename
//   <work_path>/npumesh_tuning/tuning.lock  who measures now
//
// One process measures at a time, so that times are not those of a machine on which others measure
// too. A record is published once and not replaced while it is good, so all processes that ask
// after that have the same winner.
//
// Thread-safety: none; one object for each session, any number of processes.
#ifndef NPUMESH_GRAPH_TUNING_TUNING_RECORDS_H_
#define NPUMESH_GRAPH_TUNING_TUNING_RECORDS_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "graph/static_kernel/store/kernel_lock.h"
#include "graph/tuning/tuning_record.h"
#include "runtime/base/files/file_system.h"

namespace npumesh {

class TuningRecords {
 public:
  explicit TuningRecords(const std::string& work_path, FileSystem& fs = RealFileSystem())
      : folder_(work_path + "/npumesh_tuning"), fs_(&fs) {}

  const std::string& folder() const { return folder_; }
  std::string PathOf(std::string_view key) const;

  // The record; nullopt: there is no record, or a bad one, of which one warning names the file and
  // what is wrong.
  std::optional<TuningRecord> Find(std::string_view key);

  // Either the record, which another process has published meanwhile, or the lock, with which the
  // caller measures. A record that is the same as `stale` (may be null) does not count. Makes the
  // folder. Waits at most `limit` for the processes that measure; after
  // it the lock is taken from the one that has it, which may be stopped or on a host that is gone.
  // Errors: kIo: the folder takes no files; kTimeout: another process was quicker to take the lock
  // over.
  struct Turn {
    std::optional<TuningRecord> record;
    std::optional<KernelLock> lock;
    bool waited = false;
  };
  Result<Turn> Take(std::string_view key, const TuningRecord* stale,
                    std::chrono::milliseconds limit);

  // REQUIRES: the caller has the lock. Errors as WriteFile.
  Status Publish(const TuningRecord& record);

 private:
  std::string folder_;
  FileSystem* fs_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_TUNING_TUNING_RECORDS_H_
