// Rendezvous: how the ranks that share a root info learn who they are.
//
// As on hardware, the rank that made the root info listens, and every rank of the communicator
// connects and says which number it was given. When all have come, all are told the world ranks by
// number; when they disagree, one leaves or one does not come, all are told why, in the same words.
// It works for any part of a world, in any order, over one host or several.
//
// Thread-safety: a RootServer works on a separate thread; `Attend` may be called from any thread.
#ifndef NPUMESH_COLLECTIVES_HCCL_CREATION_RENDEZVOUS_H_
#define NPUMESH_COLLECTIVES_HCCL_CREATION_RENDEZVOUS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectives/hccl/creation/root_info.h"
#include "runtime/base/status.h"
#include "runtime/world/mapping.h"

namespace npumesh {

// The port is open to strangers: who says nothing, too little or nonsense is sent away in time, and
// when strangers use up the descriptors, the oldest of them make room.
class RootServer {
 public:
  struct Options {
    std::string ip;                  // to listen at
    std::vector<uint16_t> ports{0};  // the first that is free; 0: any
    RendezvousToken token{};
    // How long the first rank waits for the last.
    std::chrono::seconds patience{120};
    // How long a connection may take to say who it is.
    std::chrono::milliseconds hello_patience{5000};
  };

  // kIo when no port is free (EI0019).
  static Result<std::unique_ptr<RootServer>> Start(const Options& options);
  // Ranks that wait are told that the root has ended.
  ~RootServer();

  uint16_t port() const { return port_; }
  // True when every member has been told.
  bool done() const { return done_.load(); }

 private:
  RootServer(UniqueFd listener, UniqueFd stop, uint16_t port)
      : listener_(std::move(listener)), stop_(std::move(stop)), port_(port) {}
  void Serve(const Options& options);

  UniqueFd listener_;
  UniqueFd stop_;  // an eventfd
  const uint16_t port_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// What one rank says of itself.
struct Attendance {
  uint32_t ranks = 0;  // of the communicator
  uint32_t rank = 0;
  int32_t world_rank = 0;
};

// Collective over the ranks of the communicator: the world rank of each, by its number. Waits up to
// `patience`; `watch` is asked every few milliseconds and ends the wait with its error. Errors:
// kMismatch (different numbers of ranks, a number or a device twice), kTimeout naming who is
// missing, kPeerLost when a rank or the root has ended.
Result<std::vector<int>> Attend(const RootInfo& root, const Attendance& me,
                                std::chrono::seconds patience,
                                const std::function<Status()>& watch);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CREATION_RENDEZVOUS_H_
