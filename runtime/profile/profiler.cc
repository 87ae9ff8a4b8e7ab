#include "runtime/profile/profiler.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"

namespace npumesh {
namespace {

constexpr std::chrono::milliseconds kPause{20};
constexpr size_t kSpansOfABlock = 2048;

uint64_t SpansIn(const Span& span) {
  return span.kind == SpanKind::kTasks ? std::bit_cast<SpanPack>(span).count : 1;
}

}  // namespace

int64_t Profiler::Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Profiler& Profiler::Of(World& world) {
  const auto make = []() -> std::unique_ptr<WorldCompanion> {
    return std::make_unique<Profiler>();
  };
  return *static_cast<Profiler*>(world.Keep("profiler", make));
}

Profiler::~Profiler() {
  OnShutdown();
}

void Profiler::OnShutdown() {
  if (const Status status = Stop(); !status.ok()) NPUMESH_ERROR("profile: {}", status.message());
}

Status Profiler::Start(const std::string& folder, const ProfileOwner& owner, uint64_t most_bytes,
                       uint32_t kinds) {
  NPUMESH_RETURN_IF_ERROR(Stop());
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kDebug));
  path_ = folder + "/" + ProfileFileName(owner.rank);
  FileSystem& files = RealFileSystem();
  NPUMESH_RETURN_IF_ERROR(files.Remove(path_));
  const std::lock_guard lock(mutex_);
  NPUMESH_ASSIGN_OR_RETURN(file_, files.Create(path_, FileMode(FileKind::kDebug)));
  stopping_ = false;
  broken_ = Status();
  bytes_ = lost_limit_ = tasks_ = groups_ = 0;
  most_bytes_ = most_bytes;
  start_ns_ = owner.start_monotonic_ns;
  lost_full_ = 0;
  Append(ProfileHeader(owner));
  ring_.Open();
  const Status started =
      StartThread("the writer of the profile", &writer_, [this] { WriteUntilStopped(); });
  if (!started.ok()) {
    file_.reset();
    static_cast<void>(files.Remove(path_));
    return started;
  }
  run_.fetch_add(1, std::memory_order_relaxed);
  kinds_.store(kinds | kOn, std::memory_order_release);
  return broken_;
}

Status Profiler::Stop() {
  if (!writer_.joinable()) return Status();
  kinds_.store(0, std::memory_order_release);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stops_.notify_one();
  writer_.join();
  Drain();
  const std::lock_guard lock(mutex_);
  Append(EndBlock(lost_full_, lost_limit_));
  const Status closed = file_->Close();
  file_.reset();
  if (broken_.ok()) broken_ = closed;
  // No half profile keeps its name; one without an end is that of a rank that was killed.
  if (!broken_.ok()) static_cast<void>(RealFileSystem().Remove(path_));
  return broken_;
}

uint32_t Profiler::Name(ProfiledTask task) {
  return NameAll({std::move(task)});
}

uint32_t Profiler::NameAll(std::vector<ProfiledTask> tasks) {
  if (!on()) return 0;
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return 0;
  const uint32_t first = tasks_ + 1;
  for (ProfiledTask& task : tasks) {
    task.id = ++tasks_;
    Append(TaskBlock(task));
  }
  return first;
}

uint32_t Profiler::Group(ProfiledGroup group) {
  if (!on()) return 0;
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return 0;
  group.id = ++groups_;
  Append(GroupBlock(group));
  return group.id;
}

void Profiler::NoteClock(const ClockSample& sample) {
  if (!on()) return;
  const std::lock_guard lock(mutex_);
  if (file_ != nullptr) Append(ClockBlock(sample));
}

void Profiler::WriteUntilStopped() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (stops_.wait_for(lock, kPause, [this] { return stopping_; })) return;
    }
    Drain();
  }
}

void Profiler::Drain() {
  std::array<Span, kSpansOfABlock> spans;
  for (;;) {
    size_t count = 0;
    while (count < spans.size() && ring_.Pop(spans[count])) ++count;
    if (count == 0) return;
    const std::lock_guard lock(mutex_);
    const auto end = std::remove_if(spans.begin(), spans.begin() + count,
                                    [this](const Span& span) { return !BelongsToRun(span); });
    count = static_cast<size_t>(end - spans.begin());
    if (count == 0) continue;
    const std::string block = SpansBlock(spans.data(), count);
    if (bytes_ + block.size() > most_bytes_) {
      for (size_t i = 0; i < count; ++i) lost_limit_ += SpansIn(spans[i]);
    } else {
      Append(block);
    }
  }
}

bool Profiler::BelongsToRun(const Span& span) const {
  if (span.begin_ns < start_ns_) return false;
  if (span.kind == SpanKind::kTasks) {
    const auto pack = std::bit_cast<SpanPack>(span);
    return uint64_t{pack.subject} + pack.count <= uint64_t{tasks_} + 1;
  }
  return span.subject <= tasks_ && span.group <= groups_;
}

void Profiler::Append(std::string_view block) {
  if (!broken_.ok()) return;
  broken_ = file_->Append(std::as_bytes(std::span(block)));
  bytes_ += block.size();
}

}  // namespace npumesh
