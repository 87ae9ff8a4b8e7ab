#include "runtime/device/shared_ticket.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/process/process_state.h"

namespace npumesh {
namespace {

constexpr uint64_t kPageBytes = 4096;
// In a number: 22 bits of process, 16 of descriptor, 26 of nonce.
constexpr int kProcessBits = 22;
constexpr int kDescriptorBits = 16;
constexpr uint64_t kNumberNonce = (uint64_t{1} << (64 - kProcessBits - kDescriptorBits)) - 1;

Result<uint64_t> Nonce() {
  uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) == sizeof nonce) return nonce;
  return Error(Code::kIo, "getrandom: {}", std::strerror(errno));
}

bool Ended(int process, uint64_t start) {
  const char state = ProcessState(process);
  return state == 0 || state == 'Z' || (start != 0 && ProcessStart(process) != start);
}

Status HasEnded(int process) {
  return Error(Code::kPeerLost, "process {}, which shares this, has ended", process);
}

// A file that another process has open.
Result<UniqueFd> OpenOf(int process, int descriptor) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd) return fd;
  return Error(Code::kNotFound, "process {} does not share this any more ({}: {})", process, path,
               std::strerror(errno));
}

}  // namespace

Result<std::shared_ptr<SharedTicket>> SharedTicket::Create(SharedKind kind,
                                                           const SharedBlock& block) {
  std::shared_ptr<SharedTicket> ticket(new SharedTicket);
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t nonce, Nonce());
  NPUMESH_ASSIGN_OR_RETURN(ticket->mapping_,
                           Mapping::OfDescriptor("ticket", kPageBytes, &ticket->fd_));
  ticket->owner_ = ticket->self_ = getpid();
  ticket->owner_start_ = ProcessStart(ticket->owner_);
  SharedPage& page = ticket->page();
  page.nonce = nonce;
  page.kind = kind;
  page.memory_fd = block.descriptor;
  page.offset = block.offset;
  page.bytes = block.bytes;
  page.magic = SharedPage::kMagic;
  page.open.store(1, std::memory_order_release);
  return ticket;
}

SharedTicket::~SharedTicket() {
  if (mapping_ == nullptr) return;
  if (owned()) {
    Close();
    return;
  }
  for (auto& importer : page().importers) {
    int32_t self = self_;
    if (importer.compare_exchange_strong(self, 0)) return;
  }
}

std::string SharedTicket::key() const {
  return fmt::format("npumesh-{:x}-{:x}-{:x}-{:016x}", owner_, owner_start_, fd_.get(),
                     page().nonce);
}

uint64_t SharedTicket::number() const {
  return static_cast<uint64_t>(owner_) << (64 - kProcessBits) |
         static_cast<uint64_t>(fd_.get()) << (64 - kProcessBits - kDescriptorBits) |
         (page().nonce & kNumberNonce);
}

Result<std::shared_ptr<SharedTicket>> SharedTicket::Import(std::string_view key, SharedKind kind) {
  unsigned process = 0;
  unsigned long long start = 0;
  unsigned descriptor = 0;
  unsigned long long nonce = 0;
  const std::string text(key.substr(0, kKeyBytes));
  int end = 0;
  const int found = std::sscanf(text.c_str(), "npumesh-%x-%llx-%x-%llx%n", &process, &start,
                                &descriptor, &nonce, &end);
  if (found != 4 || static_cast<size_t>(end) != text.size() || process == 0 ||
      process > unsigned{1} << 30 || descriptor > unsigned{1} << 30) {
    return Error(Code::kInvalidArgument, "\"{}\" is no key of npumesh", text);
  }
  return Open({static_cast<int>(process), start, static_cast<int>(descriptor), nonce}, kind,
              ~uint64_t{0});
}

Result<std::shared_ptr<SharedTicket>> SharedTicket::Import(uint64_t number, SharedKind kind) {
  const auto process = static_cast<int>(number >> (64 - kProcessBits));
  const auto descriptor = static_cast<int>(number >> (64 - kProcessBits - kDescriptorBits) &
                                           ((uint64_t{1} << kDescriptorBits) - 1));
  if (process == 0) {
    return Error(Code::kInvalidArgument, "{:#x} is no shareable handle of npumesh", number);
  }
  return Open({process, 0, descriptor, number & kNumberNonce}, kind, kNumberNonce);
}

Result<std::shared_ptr<SharedTicket>> SharedTicket::Open(const Name& name, SharedKind kind,
                                                         uint64_t nonce_mask) {
  if (Ended(name.process, name.start)) return HasEnded(name.process);
  NPUMESH_ASSIGN_OR_RETURN(const UniqueFd fd, OpenOf(name.process, name.descriptor));
  struct stat about {};
  if (fstat(fd.get(), &about) != 0 || about.st_size != static_cast<off_t>(kPageBytes)) {
    return Error(Code::kNotFound, "process {} does not share this any more", name.process);
  }
  std::shared_ptr<SharedTicket> ticket(new SharedTicket);
  ticket->owner_ = name.process;
  ticket->owner_start_ = ProcessStart(name.process);
  NPUMESH_ASSIGN_OR_RETURN(ticket->mapping_, Mapping::Map(fd, kPageBytes));
  const SharedPage& page = ticket->page();
  if (page.magic != SharedPage::kMagic || (page.nonce & nonce_mask) != name.nonce ||
      page.open.load(std::memory_order_acquire) == 0) {
    return Error(Code::kNotFound, "process {} does not share this any more", name.process);
  }
  if (page.kind != kind) {
    return Error(Code::kInvalidArgument, "the key is of something else (kind {}, expected {})",
                 static_cast<int>(page.kind), static_cast<int>(kind));
  }
  NPUMESH_RETURN_IF_ERROR(ticket->Join());
  return ticket;
}

Status SharedTicket::Join() {
  const int process = getpid();
  SharedPage& shared = page();
  const uint32_t count = shared.allowed_count.load(std::memory_order_acquire);
  const auto end = shared.allowed.begin() + std::min<size_t>(count, SharedPage::kMostProcesses);
  const bool listed = std::find(shared.allowed.begin(), end, process) != end;
  if (shared.anyone == 0 && !listed && process != owner_) {
    return Error(Code::kUnsupported,
                 "process {} does not allow process {} to import this; it lists processes, or "
                 "exports without a list",
                 owner_, process);
  }
  if (process == owner_) return Status();  // an import of one's own; not in the list
  for (auto& importer : shared.importers) {
    int32_t none = 0;
    if (!importer.compare_exchange_strong(none, process)) continue;
    self_ = process;
    return Status();
  }
  return Error(Code::kUnsupported, "{} processes have imported this already",
               SharedPage::kMostProcesses);
}

Status SharedTicket::Allow(std::span<const int32_t> processes) {
  SharedPage& shared = page();
  const uint32_t count = shared.allowed_count;
  if (processes.size() > SharedPage::kMostProcesses - count) {
    return Error(Code::kInvalidArgument, "{} processes, expected at most {} for one key",
                 count + processes.size(), SharedPage::kMostProcesses);
  }
  for (size_t i = 0; i < processes.size(); ++i) shared.allowed[count + i] = processes[i];
  shared.allowed_count.store(count + static_cast<uint32_t>(processes.size()),
                             std::memory_order_release);
  return Status();
}

Result<SharedTicket::MappedBlock> SharedTicket::MapBlock() const {
  const SharedPage& shared = page();
  NPUMESH_ASSIGN_OR_RETURN(const UniqueFd fd, OpenOf(owner_, shared.memory_fd));
  const uint64_t offset = shared.offset;
  const uint64_t skipped = offset % kPageBytes;
  NPUMESH_ASSIGN_OR_RETURN(
      auto pages, Mapping::Part(fd, offset - skipped, RoundUpToPages(skipped + shared.bytes)));
  std::byte* const start = pages->data() + skipped;
  return MappedBlock{std::move(pages), start};
}

bool SharedTicket::in_use() const {
  const auto& importers = page().importers;
  return std::any_of(importers.begin(), importers.end(), [](const auto& importer) {
    const int process = importer;
    return process != 0 && !Ended(process, 0);
  });
}

Status SharedTicket::CheckOthers() const {
  if (!owned()) return Ended(owner_, owner_start_) ? HasEnded(owner_) : Status();
  for (const auto& importer : page().importers) {
    if (const int process = importer; process != 0 && Ended(process, 0)) return HasEnded(process);
  }
  return Status();
}

}  // namespace npumesh
