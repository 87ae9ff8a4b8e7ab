// SharedTicket: a page of memory that stands for something that a process shares with others of its
// host under a key: a block of device memory, or the state of a notify or an event.
//
// The page is an anonymous file. The key names its owner (process, start) and the descriptor there;
// a process that has the key opens it through /proc, which the system allows to processes of the
// same user. Nothing has a name in a file system, so nothing is left behind when a process is
// killed, and memory that is mapped stays valid.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_DEVICE_SHARED_TICKET_H_
#define NPUMESH_RUNTIME_DEVICE_SHARED_TICKET_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/files/unique_fd.h"
#include "runtime/base/status.h"
#include "runtime/world/mapping.h"

namespace npumesh {

enum class SharedKind : uint32_t { kMemory = 1, kPhysical = 2, kNotify = 3, kEvent = 4 };

// What is in the page. Written by its owner but for the words of state and `importers`.
struct SharedPage {
  static constexpr uint64_t kMagic = 0x3154'4b43'4950'4e00;
  static constexpr size_t kMostProcesses = 256;

  uint64_t magic;
  uint64_t nonce;  // in the key, too: the descriptor may have been used again
  SharedKind kind;
  int32_t memory_fd;             // in the owner; kMemory and kPhysical
  std::atomic<uint64_t> offset;  // in that file; its owner may move the bytes
  uint64_t bytes;
  std::atomic<uint32_t> open;
  std::atomic<uint32_t> anyone;     // 1: no list of processes
  std::atomic<uint64_t> value;      // of a notify; of an event: the records that were reached
  std::atomic<uint64_t> announced;  // of an event: the records that were queued
  std::atomic<uint32_t> allowed_count;
  std::array<std::atomic<int32_t>, kMostProcesses> allowed;
  std::array<std::atomic<int32_t>, kMostProcesses> importers;  // 0: free
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(SharedPage) <= 4096);

// A block of memory for others to map.
struct SharedBlock {
  int descriptor = -1;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class SharedTicket {
 public:
  // Bytes of the longest key, its end included.
  static constexpr size_t kKeyBytes = 64;

  // Errors: those of the system (kIo, kOutOfMemory).
  static Result<std::shared_ptr<SharedTicket>> Create(SharedKind kind,
                                                      const SharedBlock& block = {});

  // What a key of another process, or of this one, stands for. Errors: kInvalidArgument for a text
  // that is no key of this kind, kPeerLost when its owner has ended, kNotFound when the owner has
  // closed it, kUnsupported when this process may not import it.
  static Result<std::shared_ptr<SharedTicket>> Import(std::string_view key, SharedKind kind);

  // The owner closes it: no more imports. An importer leaves the list.
  ~SharedTicket();
  SharedTicket(const SharedTicket&) = delete;
  SharedTicket& operator=(const SharedTicket&) = delete;

  std::string key() const;
  // The number that Import(number) takes; for interfaces without room for a key.
  uint64_t number() const;
  static Result<std::shared_ptr<SharedTicket>> Import(uint64_t number, SharedKind kind);

  // REQUIRES of these: it was created here. Error: kInvalidArgument for more than kMostProcesses.
  Status Allow(std::span<const int32_t> processes);
  void AllowAnyone() { page().anyone = 1; }
  // No more imports.
  void Close() { page().open = 0; }

  bool owned() const { return owner_ == self_; }
  int owner() const { return owner_; }
  SharedPage& page() const { return *reinterpret_cast<SharedPage*>(mapping_->data()); }

  // The shared block, mapped here; the start of the block lies at the pointer. Errors: those of the
  // system, kPeerLost. REQUIRES: kMemory or kPhysical.
  struct MappedBlock {
    std::shared_ptr<Mapping> pages;
    std::byte* start = nullptr;
  };
  Result<MappedBlock> MapBlock() const;

  // kPeerLost when the owner has ended, or, asked by the owner, when a process that has imported it
  // has ended without giving it back.
  Status CheckOthers() const;
  // Whether a living process other than the owner has imported it. REQUIRES: it was created here.
  bool in_use() const;

 private:
  struct Name {
    int process = 0;
    uint64_t start = 0;  // 0: not known
    int descriptor = -1;
    uint64_t nonce = 0;
  };
  SharedTicket() = default;
  static Result<std::shared_ptr<SharedTicket>> Open(const Name& name, SharedKind kind,
                                                    uint64_t nonce_mask);
  Status Join();

  int owner_ = 0;
  int self_ = 0;
  uint64_t owner_start_ = 0;
  UniqueFd fd_;  // of the owner
  std::shared_ptr<Mapping> mapping_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_SHARED_TICKET_H_
