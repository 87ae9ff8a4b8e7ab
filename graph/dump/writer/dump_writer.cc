#include "graph/dump/writer/dump_writer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <iterator>
#include <span>

#include "graph/dump/format/format_mapping.h"
#include "runtime/base/files/dump_sink.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"

namespace npumesh {
namespace {

constexpr size_t kSpareBuffers = 1024;
// Capacities are powers of two, so that few sizes serve all records.
constexpr uint64_t kSmallestBuffer = 4096;
constexpr uint64_t kLargestWaste = 4;
// To wake the writer costs the run as much as to compute the statistics of a small tensor, so it
// sleeps until there is enough to do, or for a moment.
constexpr uint64_t kRipeBytes = uint64_t{256} << 10;
constexpr size_t kRipeFiles = 64;
constexpr std::chrono::milliseconds kLongestRest(20);
// Below it a copy costs less than a second call to the system.
constexpr uint64_t kOneWriteBytes = uint64_t{64} << 10;

uint64_t BytesOf(const DumpFileJob& job) {
  return job.head.size() + job.payload.size();
}

}  // namespace

void DumpBuffer::Reserve(uint64_t bytes) {
  if (bytes <= capacity_) return;
  std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);  // not zeroed
  if (size_ > 0) std::memcpy(memory.get(), memory_.get(), size_);
  memory_ = std::move(memory);
  capacity_ = bytes;
}

void DumpBuffer::Append(const void* data, uint64_t bytes) {
  if (bytes == 0) return;
  Reserve(size_ + bytes);
  std::memcpy(memory_.get() + size_, data, bytes);
  size_ += bytes;
}

DumpWriter::DumpWriter(uint64_t queue_bytes, int log_rank, FileSystem& fs)
    : queue_bytes_(queue_bytes), log_rank_(log_rank), fs_(fs) {
  const Status started = StartThread("the writer of the dump", &thread_, [this] { Work(); });
  if (!started.ok()) error_ = started;
}

DumpWriter::~DumpWriter() {
  if (const Status status = Finish(); !status.ok()) {
    NPUMESH_DEBUG("the dump had stopped: {}", status.message());
  }
}

DumpBuffer DumpWriter::Take(uint64_t bytes) {
  const uint64_t capacity = std::bit_ceil(std::max(bytes, kSmallestBuffer));
  DumpBuffer buffer;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [capacity](const DumpBuffer& spare) {
      return spare.capacity() >= capacity && spare.capacity() <= kLargestWaste * capacity;
    };
    const auto last = std::find_if(spare_.rbegin(), spare_.rend(), fits);
    if (last != spare_.rend()) {
      buffer = std::move(*last);
      spare_bytes_ -= buffer.capacity();
      spare_.erase(std::next(last).base());
    }
  }
  buffer.Clear();
  buffer.Reserve(capacity);
  return buffer;
}

void DumpWriter::Return(DumpBuffer buffer) {
  const std::lock_guard lock(mutex_);
  Recycle(std::move(buffer));
}

void DumpWriter::Recycle(DumpBuffer buffer) {
  if (buffer.capacity() == 0) return;
  spare_bytes_ += buffer.capacity();
  spare_.push_back(std::move(buffer));
  while (spare_bytes_ > queue_bytes_ || spare_.size() > kSpareBuffers) {
    spare_bytes_ -= spare_.front().capacity();
    spare_.erase(spare_.begin());
  }
}

void DumpWriter::Submit(DumpFileJob job) {
  std::unique_lock lock(mutex_);
  const uint64_t bytes = BytesOf(job);
  const bool room = waiting_bytes_ == 0 || waiting_bytes_ + bytes <= queue_bytes_;
  if (!error_.ok() || !room) {
    Serve(std::move(job), submitters_folder_, lock);
    return;
  }
  waiting_bytes_ += bytes;
  queue_.push_back(std::move(job));
  if (IsRipe()) ripe_.notify_one();
}

void DumpWriter::Drain() {
  std::unique_lock lock(mutex_);
  ServeQueue(submitters_folder_, lock);
  idle_.wait(lock, [this] { return waiting_bytes_ == 0; });
}

Status DumpWriter::Finish() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    ripe_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  return error();
}

Status DumpWriter::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

DumpCounts DumpWriter::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void DumpWriter::Work() {
  SetLogRank(log_rank_);
  std::string folder;
  std::unique_lock lock(mutex_);
  for (;;) {
    ripe_.wait_for(lock, kLongestRest, [this] { return closing_ || IsRipe(); });
    ServeQueue(folder, lock);
    if (closing_) return;
  }
}

void DumpWriter::ServeQueue(std::string& folder, std::unique_lock<std::mutex>& lock) {
  while (!queue_.empty()) {
    DumpFileJob job = std::move(queue_.front());
    queue_.pop_front();
    const uint64_t bytes = BytesOf(job);
    Serve(std::move(job), folder, lock);
    waiting_bytes_ -= bytes;
    if (waiting_bytes_ == 0) idle_.notify_all();
  }
}

bool DumpWriter::IsRipe() const {
  return waiting_bytes_ >= kRipeBytes || queue_.size() >= kRipeFiles;
}

void DumpWriter::Serve(DumpFileJob job, std::string& folder, std::unique_lock<std::mutex>& lock) {
  Status written = error_;
  if (written.ok()) {
    lock.unlock();
    written = Write(job, folder);
    lock.lock();
  }
  Account(job, written);
  Recycle(std::move(job.payload));
}

void DumpWriter::Account(const DumpFileJob& job, const Status& written) {
  if (written.ok()) {
    ++(job.statistics ? counts_.statistics_files : counts_.files);
    if (!job.statistics) counts_.bytes += BytesOf(job);
    return;
  }
  ++counts_.lost_files;
  counts_.lost_bytes += BytesOf(job);
  if (!error_.ok()) return;
  error_ = written;
  NPUMESH_ERROR("the dump stops after {} files: {}", counts_.files + counts_.statistics_files,
                written.message());
}

Status DumpWriter::Write(const DumpFileJob& job, std::string& folder) {
  const std::span payload(job.payload.data(), job.payload.size());
  bool taken = false;
  NPUMESH_RETURN_IF_ERROR(DumpSink::Give(job.folder + "/" + job.name,
                                         {std::as_bytes(std::span(job.head)), payload}, &taken));
  if (taken) return Status();
  if (job.folder != folder) {
    NPUMESH_RETURN_IF_ERROR(MakeFolders(job.folder, FileKind::kDataDump, fs_));
    folder = job.folder;
  }
  const std::string stored = StorableName(folder, job.name);
  // The line first: a file whose name no reader knows would be worth nothing.
  if (stored != job.name) NPUMESH_RETURN_IF_ERROR(AddMapping(folder, stored, job.name, fs_));
  NPUMESH_ASSIGN_OR_RETURN(const auto file,
                           SecureFile::Create(folder + "/" + stored, FileKind::kDataDump, fs_));
  if (payload.size() <= kOneWriteBytes) {
    const std::string_view bytes(reinterpret_cast<const char*>(payload.data()), payload.size());
    NPUMESH_RETURN_IF_ERROR(file->Append(job.head + std::string(bytes)));
  } else {
    NPUMESH_RETURN_IF_ERROR(file->Append(job.head));
    NPUMESH_RETURN_IF_ERROR(file->Append(payload));
  }
  return file->CommitUnsynced();
}

}  // namespace npumesh
