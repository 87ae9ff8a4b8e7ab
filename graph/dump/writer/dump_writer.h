// DumpWriter: one thread that turns finished records from a bounded queue into files.
//
// The run hands over bytes and goes on. When the queue is full it writes its record itself in place
// of waiting, so memory stays bounded. The first error stops the dump, not
// the run: it is logged once, and what comes later is counted instead of written.
//
// Thread-safety: one thread submits; the writer's thread takes from the queue.
#ifndef NPUMESH_GRAPH_DUMP_WRITER_DUMP_WRITER_H_
#define NPUMESH_GRAPH_DUMP_WRITER_DUMP_WRITER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

// Bytes on their way to a file. Memory is used again, because fresh pages cost as much as the copy.
class DumpBuffer {
 public:
  void Clear() { size_ = 0; }
  // Makes room for `bytes` in all; what was appended stays.
  void Reserve(uint64_t bytes);
  void Append(const void* data, uint64_t bytes);
  const std::byte* data() const { return memory_.get(); }
  uint64_t size() const { return size_; }
  uint64_t capacity() const { return capacity_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  uint64_t size_ = 0;
  uint64_t capacity_ = 0;
};

// A file to be: `folder`/`name` with `head` and, after it, `payload`.
struct DumpFileJob {
  std::string folder;
  std::string name;
  std::string head;
  DumpBuffer payload;
  bool statistics = false;
};

struct DumpCounts {
  uint64_t files = 0;             // tensor files written
  uint64_t bytes = 0;             // and their bytes
  uint64_t statistics_files = 0;  // written
  uint64_t lost_files = 0;        // not written because of the error
  uint64_t lost_bytes = 0;
};

class DumpWriter {
 public:
  // At most `queue_bytes` wait to be written, and as many are kept to be used again; one larger
  // record waits alone. `log_rank` is what the thread's log lines carry. Where the system gives no
  // thread, that is the first error.
  DumpWriter(uint64_t queue_bytes, int log_rank, FileSystem& fs);
  // Drains the queue.
  ~DumpWriter();
  DumpWriter(const DumpWriter&) = delete;
  DumpWriter& operator=(const DumpWriter&) = delete;

  // An empty buffer with room for `bytes`: of those that fit, the one that was used last.
  DumpBuffer Take(uint64_t bytes);
  // Gives a buffer back unused.
  void Return(DumpBuffer buffer);
  // Writes the file itself when the queue is full. The disk decides how long that takes; after an
  // error, nothing does.
  void Submit(DumpFileJob job);
  // Waits until everything that was submitted is written or lost; helps with it.
  void Drain();
  // Waits until everything is written or lost, and ends the thread. Returns the first error.
  Status Finish();

  // The first error so far.
  Status error() const;
  DumpCounts counts() const;

 private:
  void Work();
  // Serves what waits, from the front.
  void ServeQueue(std::string& folder, std::unique_lock<std::mutex>& lock);
  // Enough waits that the writer is worth waking.
  bool IsRipe() const;
  // Writes a record or counts it as lost. `lock` is released meanwhile. `folder` is the last one
  // that this thread made.
  void Serve(DumpFileJob job, std::string& folder, std::unique_lock<std::mutex>& lock);
  Status Write(const DumpFileJob& job, std::string& folder);
  void Account(const DumpFileJob& job, const Status& written);
  void Recycle(DumpBuffer buffer);

  const uint64_t queue_bytes_;
  const int log_rank_;
  FileSystem& fs_;

  mutable std::mutex mutex_;
  std::condition_variable ripe_;
  std::condition_variable idle_;  // nothing waits
  std::deque<DumpFileJob> queue_;
  uint64_t waiting_bytes_ = 0;     // of the queue and of the job that is being written
  std::vector<DumpBuffer> spare_;  // the last one was used last
  uint64_t spare_bytes_ = 0;
  bool closing_ = false;
  Status error_;
  DumpCounts counts_;

  std::string submitters_folder_;
  std::thread thread_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_WRITER_DUMP_WRITER_H_
