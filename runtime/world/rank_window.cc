#include "runtime/world/rank_window.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/files/folder_reader.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/unique_fd.h"
#include "runtime/base/process/process_state.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"
#include "runtime/world/board_page.h"
#include "runtime/world/loop_line.h"

namespace npumesh {
namespace {

constexpr uint64_t kMappedBytes = board::kPageBytes + board::kLinesBytes;

// What links and lists of mappings call the file of a board.
std::string FileName() {
  return fmt::format("/memfd:npumesh-{} (deleted)", board::kLabel);
}

bool IsBoard(const std::string& link) {
  std::array<char, 64> target{};
  const ssize_t bytes = readlink(link.c_str(), target.data(), target.size());
  return bytes > 0 && std::string_view(target.data(), static_cast<size_t>(bytes)) == FileName();
}

// The files of all boards among the mappings of a process: theirs are the fifth fields of lines
// that end with the name (proc(5)).
std::set<uint64_t> BoardsOf(int process) {
  constexpr size_t kInode = 4;
  std::set<uint64_t> boards;
  const Result<std::string> maps = ReadFile(fmt::format("/proc/{}/maps", process));
  if (!maps.ok()) return boards;
  const std::string name = FileName();
  for (const std::string_view line : Split(*maps, "\n")) {
    if (!line.ends_with(name)) continue;
    const std::vector<std::string_view> fields = Split(line, " ");
    if (fields.size() <= kInode) continue;
    const auto inode = ParseInt(fields[kInode], 0, std::numeric_limits<int64_t>::max(), "inode");
    if (inode.ok()) boards.insert(static_cast<uint64_t>(*inode));
  }
  return boards;
}

// Null: it is no board of this version.
std::shared_ptr<const std::byte> Map(const std::string& link) {
  const UniqueFd fd(open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) return nullptr;
  if (static_cast<uint64_t>(info.st_size) < kMappedBytes) return nullptr;
  void* part = mmap(nullptr, kMappedBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (part == MAP_FAILED) return nullptr;
  auto* page = static_cast<BoardPage*>(part);
  std::shared_ptr<const std::byte> mapped(static_cast<const std::byte*>(part),
                                          [part](const std::byte*) { munmap(part, kMappedBytes); });
  const uint32_t layout = std::atomic_ref(page->layout).load(std::memory_order_acquire);
  return layout == BoardPage::kLayout ? mapped : nullptr;
}

const BoardPage& PageOf(const std::shared_ptr<const std::byte>& part) {
  return *reinterpret_cast<const BoardPage*>(part.get());
}

}  // namespace

std::vector<RankWindow> RankWindow::Open(int process) {
  std::vector<RankWindow> windows;
  const std::string folder = fmt::format("/proc/{}/fd", process);
  FolderReader files(folder);
  while (const char* const name = files.Next()) {
    const std::string link = fmt::format("{}/{}", folder, name);
    if (!IsBoard(link)) continue;
    if (auto part = Map(link)) windows.push_back(RankWindow(process, std::move(part)));
  }
  if (windows.empty()) return windows;
  const std::set<uint64_t> boards = BoardsOf(process);
  for (RankWindow& window : windows) window.boards_ = boards;
  return windows;
}

int RankWindow::rank() const {
  return PageOf(part_).rank;
}

int RankWindow::world_size() const {
  return PageOf(part_).world_size;
}

RankGlance RankWindow::Look() const {
  const BoardPage& page = PageOf(part_);
  RankGlance glance;
  const auto state = static_cast<BoardState>(page.state.load(std::memory_order_acquire));
  glance.started = state != BoardState::kStarting;
  Sight& sight = glance.sight;
  sight.visible = true;
  sight.leaving = state == BoardState::kLeaving;
  if (state == BoardState::kFailed) {
    sight.lost = Error(static_cast<Code>(page.code), "{}", page.failure());
  }
  sight.process = process_;
  sight.process_state = ProcessState(process_);
  sight.positions = board::ReadPositions(part_.get(), &sight.lines);
  glance.step = TakeSteps(sight.positions);
  glance.loops = TakeLoops(sight.positions);
  return glance;
}

}  // namespace npumesh
