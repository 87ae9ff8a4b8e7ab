// DescriptorExchange: hands file descriptors to the other processes of a node.
//
// Each process owns one datagram socket with an abstract address, which vanishes with the process.
// A descriptor travels as SCM_RIGHTS; the kernel vouches for the sender's user, and datagrams of
// other users are thrown away.
//
// Thread-safety: none.
#ifndef NPUMESH_RUNTIME_WORLD_DESCRIPTOR_EXCHANGE_H_
#define NPUMESH_RUNTIME_WORLD_DESCRIPTOR_EXCHANGE_H_

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/process/wait.h"
#include "runtime/base/status.h"
#include "runtime/world/mapping.h"

namespace npumesh {

class DescriptorExchange {
 public:
  // Longest address() in bytes, terminating zero included.
  static constexpr size_t kAddressBytes = 64;

  // Opens this process's socket.
  static Result<DescriptorExchange> Open();

  // Where peers send to; to be told to them by other means.
  const std::string& address() const { return address_; }

  // Who the peers are, this process included at index `me`.
  void Introduce(std::vector<std::string> addresses, int me);

  // Process id of a peer as this process sees it (its own pid namespace), from the kernel; 0 before
  // the peer's first descriptor came.
  int process_of(int peer) const { return processes_[static_cast<size_t>(peer)]; }

  // Collective over the peers: gives `fd` to all, returns theirs by peer index (empty at `me`).
  // `check(peer)` is asked while waiting and ends the wait with its error.
  template <typename Check>
  Result<std::vector<UniqueFd>> AllGather(const UniqueFd& fd, Deadline deadline, Check check);

 private:
  struct Parcel {
    uint32_t round;
    int32_t from;
  };

  DescriptorExchange(UniqueFd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}
  // False: the peer's queue is full at the moment.
  Result<bool> TrySend(int peer, const UniqueFd& fd);
  // False: nothing there. What arrives is kept in arrived_.
  Result<bool> TryReceive();

  UniqueFd socket_;
  std::string address_;
  std::vector<std::string> peers_;
  std::vector<int> processes_;
  int me_ = 0;
  uint32_t round_ = 0;
  std::map<std::pair<uint32_t, int>, UniqueFd> arrived_;  // by round and peer
};

template <typename Check>
Result<std::vector<UniqueFd>> DescriptorExchange::AllGather(const UniqueFd& fd, Deadline deadline,
                                                            Check check) {
  const int count = static_cast<int>(peers_.size());
  std::vector<UniqueFd> all(peers_.size());
  std::vector<bool> sent(peers_.size(), false);
  sent[static_cast<size_t>(me_)] = true;
  int missing = 2 * (count - 1);
  Status failure;
  const auto progress = [&] {
    for (int peer = 0; peer < count; ++peer) {
      if (sent[static_cast<size_t>(peer)]) continue;
      const Result<bool> done = TrySend(peer, fd);
      if (!done.ok()) failure = done.status();
      if (!done.ok() || !*done) continue;
      sent[static_cast<size_t>(peer)] = true;
      --missing;
    }
    for (Result<bool> got = TryReceive();; got = TryReceive()) {
      if (!got.ok()) failure = got.status();
      if (!got.ok() || !*got) break;
    }
    for (int peer = 0; peer < count; ++peer) {
      const auto it = arrived_.find({round_, peer});
      if (it == arrived_.end()) continue;
      all[static_cast<size_t>(peer)] = std::move(it->second);
      arrived_.erase(it);
      --missing;
    }
    return missing == 0 || !failure.ok();
  };
  const auto watch = [&]() -> Status {
    for (int peer = 0; peer < count; ++peer) {
      if (!sent[static_cast<size_t>(peer)] || !all[static_cast<size_t>(peer)]) {
        if (peer != me_) NPUMESH_RETURN_IF_ERROR(check(peer));
      }
    }
    if (deadline.expired()) {
      return Error(Code::kTimeout, "sharing memory in the node: {} message(s) missing", missing);
    }
    return Status();
  };
  WaitPolicy policy;
  policy.yields =
      WaitPolicy::YieldsFor(count, static_cast<int>(std::thread::hardware_concurrency()));
  NPUMESH_RETURN_IF_ERROR(WaitUntil(policy, progress, watch));
  NPUMESH_RETURN_IF_ERROR(failure);
  ++round_;
  return all;
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_DESCRIPTOR_EXCHANGE_H_
