#include "runtime/world/mpi_transport.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/base/process/process_state.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/descriptor_exchange.h"
#include "runtime/world/message_group.h"
#include "runtime/world/mpi_calls.h"
#include "runtime/world/mpi_start.h"
#include "runtime/world/process_watch.h"

namespace npumesh {
namespace {

constexpr int kHandshakeTag = 1 << 14;  // above the tags of callers

// MPI belongs to the process, and so does this: how many transports have not said farewell.
std::atomic<int>& WorldsWithoutFarewell() {
  static std::atomic<int> count{0};
  return count;
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(std::shared_ptr<MpiCalls> calls, std::chrono::seconds connect_timeout,
               std::chrono::seconds soft_timeout)
      : calls_(std::move(calls)), connect_timeout_(connect_timeout), soft_timeout_(soft_timeout) {
    ++WorldsWithoutFarewell();
    MPI_Comm_rank(calls_->comm, &rank_);
    MPI_Comm_size(calls_->comm, &size_);
    calls_->check = [this](std::span<const int> world_ranks) { return CheckAlive(world_ranks); };
    calls_->remark = [this](LongWaitNotices& notices, std::span<const int> world_ranks,
                            std::string_view what) { TellStopped(notices, world_ranks, what); };
    calls_->suspects = [this](std::span<const int> world_ranks) { return Suspects(world_ranks); };
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::vector<int>& node_of() const override { return node_of_; }

  // Collective over all ranks: learns who shares memory and meets them.
  Status Meet() {
    MPI_Comm node = MPI_COMM_NULL;
    NPUMESH_RETURN_IF_ERROR(MpiStatus(
        MPI_Comm_split_type(calls_->comm, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node),
        "MPI_Comm_split_type"));
    int local_size = 0;
    int leader = rank_;
    MPI_Comm_size(node, &local_size);
    MPI_Bcast(&leader, 1, MPI_INT, 0, node);
    std::vector<int> leaders(static_cast<size_t>(size_));
    MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, calls_->comm);
    NumberNodes(leaders);
    calls_->wait_policy.yields =
        WaitPolicy::YieldsFor(local_size, static_cast<int>(std::thread::hardware_concurrency()));
    GatherHostNames();
    Status status = OpenExchange(node, local_size);
    MPI_Comm_free(&node);
    return status;
  }

  Result<std::unique_ptr<NodeSegment>> Share(std::string_view label, uint64_t bytes,
                                             NodeSegment::Reach reach) override {
    bytes = RoundUpToPages(bytes);
    std::vector<std::shared_ptr<Mapping>> parts(static_cast<size_t>(size_));
    if (local_ranks_.size() == 1 && reach == NodeSegment::Reach::kProcesses) {
      UniqueFd own;
      NPUMESH_ASSIGN_OR_RETURN(parts[static_cast<size_t>(rank_)],
                               Mapping::OfDescriptor(label, bytes, &own));
      return MakeNodeSegment(std::move(parts), bytes, std::move(own));
    }
    if (local_ranks_.size() == 1) {
      NPUMESH_ASSIGN_OR_RETURN(parts[static_cast<size_t>(rank_)], Mapping::OfProcess(label, bytes));
      return MakeNodeSegment(std::move(parts), bytes);
    }
    NPUMESH_ASSIGN_OR_RETURN(UniqueFd fd, MakeSharedMemory(label, bytes));
    LongWaitNotices notices;
    NPUMESH_ASSIGN_OR_RETURN(
        const std::vector<UniqueFd> fds,
        exchange_->AllGather(fd, Deadline::After(connect_timeout_), [&](int peer) {
          const int world_rank = local_ranks_[static_cast<size_t>(peer)];
          TellStopped(notices, std::span(&world_rank, 1), "sharing memory in the node");
          return CheckAlive(std::span(&world_rank, 1));
        }));
    for (size_t i = 0; i < local_ranks_.size(); ++i) {
      const auto world_rank = static_cast<size_t>(local_ranks_[i]);
      const bool mine = local_ranks_[i] == rank_;
      NPUMESH_ASSIGN_OR_RETURN(parts[world_rank], Mapping::Map(mine ? fd : fds[i], bytes));
      if (!mine && !watches_.contains(local_ranks_[i])) {
        watches_.try_emplace(local_ranks_[i], exchange_->process_of(static_cast<int>(i)));
      }
    }
    if (reach == NodeSegment::Reach::kRanks) fd.Reset();
    return MakeNodeSegment(std::move(parts), bytes, std::move(fd));
  }

  Status Exchange(int send_to, std::span<const std::byte> send, int recv_from,
                  std::span<std::byte> recv, int tag, Deadline deadline) override {
    std::vector<MPI_Request> requests;
    std::array<MPI_Datatype, 2> types = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    std::vector<int> peers;
    {
      std::lock_guard lock(calls_->mutex);
      if (recv_from >= 0) {
        MakeBytesType(recv.size(), &types[0]);
        MPI_Irecv(recv.data(), 1, types[0], recv_from, tag, calls_->comm, &requests.emplace_back());
        peers.push_back(recv_from);
      }
      if (send_to >= 0) {
        MakeBytesType(send.size(), &types[1]);
        MPI_Isend(send.data(), 1, types[1], send_to, tag, calls_->comm, &requests.emplace_back());
        if (send_to != recv_from) peers.push_back(send_to);
      }
    }
    Status status =
        calls_->Wait(MpiCalls::Kind::kMessages, requests, peers, deadline, "MPI message");
    std::lock_guard lock(calls_->mutex);
    for (MPI_Datatype& type : types) {
      if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
    }
    return status;
  }

  Result<std::unique_ptr<PlainGroup>> Group(const std::vector<int>& world_ranks, uint32_t key,
                                            Deadline deadline) override {
    NPUMESH_RETURN_IF_ERROR(Gather(world_ranks, key, deadline));
    if (!IsEveryone(world_ranks) && IsOnSeveralNodes(world_ranks)) {
      return MakeMessageGroup(*this, world_ranks, TagOf(key));
    }
    NPUMESH_ASSIGN_OR_RETURN(const MPI_Comm comm, IsEveryone(world_ranks)
                                                      ? Duplicate(deadline)
                                                      : CreateComm(world_ranks, key));
    std::lock_guard lock(calls_->mutex);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return MakeMpiGroup(calls_, comm, world_ranks);
  }

  PeerState Probe(int world_rank) const override {
    if (world_rank == rank_) return PeerState::kAlive;
    const auto it = watches_.find(world_rank);
    if (it == watches_.end()) return PeerState::kUnknown;
    return it->second.gone() ? PeerState::kGone : PeerState::kAlive;
  }

  Status Shutdown(Deadline deadline) override {
    NPUMESH_RETURN_IF_ERROR(CheckAlive(local_ranks_).WithContext("farewell"));
    std::vector<MPI_Request> requests(1, MPI_REQUEST_NULL);
    {
      std::lock_guard lock(calls_->mutex);
      NPUMESH_RETURN_IF_ERROR(MpiStatus(MPI_Ibarrier(calls_->comm, &requests[0]), "farewell"));
    }
    NPUMESH_RETURN_IF_ERROR(
        calls_->Wait(MpiCalls::Kind::kCollective, requests, local_ranks_, deadline, "farewell"));
    std::lock_guard lock(calls_->mutex);
    MPI_Comm_free(&calls_->comm);
    --WorldsWithoutFarewell();
    return Status();
  }

 private:
  void NumberNodes(const std::vector<int>& leaders) {
    std::map<int, int> number;  // leader -> node; leaders come in ascending rank
    for (int leader : leaders) number.try_emplace(leader, 0);
    int next = 0;
    for (auto& [leader, node] : number) node = next++;
    for (int r = 0; r < size_; ++r) {
      const int leader = leaders[static_cast<size_t>(r)];
      node_of_.push_back(number[leader]);
      if (leader == leaders[static_cast<size_t>(rank_)]) local_ranks_.push_back(r);
    }
  }

  void GatherHostNames() {
    using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
    Name mine{};
    int length = 0;
    MPI_Get_processor_name(mine.data(), &length);
    std::vector<Name> all(static_cast<size_t>(size_));
    MPI_Allgather(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, all.data(),
                  static_cast<int>(mine.size()), MPI_CHAR, calls_->comm);
    for (const Name& name : all) hosts_.emplace_back(name.data());
  }

  // The ranks of other nodes if there are any: those of this node are seen to live.
  std::string Suspects(std::span<const int> world_ranks) const {
    const auto here = [this](int r) {
      return node_of_[static_cast<size_t>(r)] == node_of_[static_cast<size_t>(rank_)];
    };
    const bool all_here = std::all_of(world_ranks.begin(), world_ranks.end(), here);
    std::map<std::string, std::string> ranks_on;  // host -> ranks
    for (int r : world_ranks) {
      if (r == rank_ || (!all_here && here(r))) continue;
      std::string& ranks = ranks_on[hosts_[static_cast<size_t>(r)]];
      ranks += fmt::format("{}{}", ranks.empty() ? "rank " : ", ", r);
    }
    std::string text;
    for (const auto& [host, ranks] : ranks_on) {
      text += fmt::format("{}{} on {}", text.empty() ? "" : "; ", ranks, host);
    }
    return text;
  }

  Status OpenExchange(MPI_Comm node, int local_size) {
    NPUMESH_ASSIGN_OR_RETURN(DescriptorExchange opened, DescriptorExchange::Open());
    exchange_ = std::make_unique<DescriptorExchange>(std::move(opened));
    using Address = std::array<char, DescriptorExchange::kAddressBytes>;
    Address mine{};
    std::copy_n(exchange_->address().c_str(),
                std::min(exchange_->address().size(), mine.size() - 1), mine.data());
    std::vector<Address> all(static_cast<size_t>(local_size));
    MPI_Allgather(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, all.data(),
                  static_cast<int>(mine.size()), MPI_CHAR, node);
    std::vector<std::string> addresses;
    for (const Address& address : all) addresses.emplace_back(address.data());
    const auto me = std::find(local_ranks_.begin(), local_ranks_.end(), rank_);
    exchange_->Introduce(std::move(addresses), static_cast<int>(me - local_ranks_.begin()));
    return Status();
  }

  // Past the soft limit, of ranks of this node.
  void TellStopped(LongWaitNotices& notices, std::span<const int> world_ranks,
                   std::string_view what) const {
    const auto waited = SteadyClock::now() - notices.since;
    if (waited < soft_timeout_) return;
    const auto stopped = std::find_if(world_ranks.begin(), world_ranks.end(), [this](int r) {
      const auto it = watches_.find(r);
      return it != watches_.end() && it->second.stopped();
    });
    if (!notices.times) notices.times.emplace(soft_timeout_);
    if (stopped == world_ranks.end() || !notices.times->Due(waited)) return;
    // Written whatever the level is: who looks at a job that hangs must see it.
    WriteLog(LogLevel::kWarning, {__FILE__, __LINE__},
             fmt::format("rank {} has waited {} s in {} for rank {}, whose process {} is stopped",
                         rank_, std::chrono::floor<std::chrono::seconds>(waited).count(), what,
                         *stopped, watches_.at(*stopped).process()));
  }

  // A rank that ends because of another one may be seen before it: all that have ended are named.
  Status CheckAlive(std::span<const int> world_ranks) const {
    std::vector<int> ended;
    for (const int r : world_ranks) {
      if (Probe(r) == PeerState::kGone) ended.push_back(r);
    }
    if (ended.empty()) return Status();
    return Error(Code::kPeerLost, "{} {} ended", RanksText(ended),
                 ended.size() == 1 ? "has" : "have");
  }

  bool IsEveryone(const std::vector<int>& world_ranks) const {
    for (size_t r = 0; r < world_ranks.size(); ++r) {
      if (world_ranks[r] != static_cast<int>(r)) return false;
    }
    return static_cast<int>(world_ranks.size()) == size_;
  }

  // A communicator of all ranks, made by the one way that can be waited for with an end.
  Result<MPI_Comm> Duplicate(Deadline deadline) {
    const std::vector<int> everyone = AllRanks(size_);
    // MPI writes to it until the request is done, which after an error is never.
    auto comm = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
    std::vector<MPI_Request> requests(1, MPI_REQUEST_NULL);
    {
      std::lock_guard lock(calls_->mutex);
      NPUMESH_RETURN_IF_ERROR(
          MpiStatus(MPI_Comm_idup(calls_->comm, comm.get(), &requests[0]), "MPI_Comm_idup"));
    }
    const Status made =
        calls_->Wait(MpiCalls::Kind::kCollective, requests, everyone, deadline, "MPI_Comm_idup");
    if (made.ok()) return *comm;
    abandoned_.push_back(std::move(comm));
    return made;
  }

  bool IsOnSeveralNodes(const std::vector<int>& world_ranks) const {
    return std::any_of(world_ranks.begin(), world_ranks.end(), [&](int r) {
      return node_of_[static_cast<size_t>(r)] != node_of_[static_cast<size_t>(world_ranks[0])];
    });
  }

  // Of a message group. Two groups of equal tags would only mix when they share two members and
  // both exchange at the same time.
  int TagOf(uint32_t key) const {
    void* highest = nullptr;
    int found = 0;
    std::lock_guard lock(calls_->mutex);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &found);
    constexpr int kFirst = kHandshakeTag + 1;
    constexpr int kLeastHighest = 32767;  // what MPI promises
    const int end = found ? *static_cast<int*>(highest) : kLeastHighest;
    return kFirst + static_cast<int>(key % static_cast<uint32_t>(end - kFirst));
  }

  // Blocks: MPI has no other way for some of the ranks. They have just met, on this node; between
  // nodes, where a cable may be cut, no wait has to be without an end.
  Result<MPI_Comm> CreateComm(const std::vector<int>& world_ranks, uint32_t key) {
    std::lock_guard lock(calls_->mutex);
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group members = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_group(calls_->comm, &all);
    MPI_Group_incl(all, static_cast<int>(world_ranks.size()), world_ranks.data(), &members);
    const int code = MPI_Comm_create_group(
        calls_->comm, members, kHandshakeTag + static_cast<int>(key % kHandshakeTag), &comm);
    MPI_Group_free(&members);
    MPI_Group_free(&all);
    NPUMESH_RETURN_IF_ERROR(MpiStatus(code, "MPI_Comm_create_group"));
    return comm;
  }

  // All ranks are here: making a communicator of some would wait without limit.
  Status Gather(const std::vector<int>& world_ranks, uint32_t key, Deadline deadline) {
    const int first = world_ranks[0];
    uint32_t token = key;
    const auto bytes = std::as_writable_bytes(std::span(&token, 1));
    if (rank_ != first) {
      NPUMESH_RETURN_IF_ERROR(Exchange(first, bytes, -1, {}, kHandshakeTag, deadline));
      return Exchange(-1, {}, first, bytes, kHandshakeTag, deadline);
    }
    for (size_t i = 1; i < world_ranks.size(); ++i) {
      NPUMESH_RETURN_IF_ERROR(Exchange(-1, {}, world_ranks[i], bytes, kHandshakeTag, deadline));
    }
    for (size_t i = 1; i < world_ranks.size(); ++i) {
      NPUMESH_RETURN_IF_ERROR(Exchange(world_ranks[i], bytes, -1, {}, kHandshakeTag, deadline));
    }
    return Status();
  }

  std::shared_ptr<MpiCalls> calls_;
  const std::chrono::seconds connect_timeout_;
  const std::chrono::seconds soft_timeout_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<int> node_of_;
  std::vector<int> local_ranks_;
  std::vector<std::string> hosts_;  // by world rank
  std::unique_ptr<DescriptorExchange> exchange_;
  std::vector<std::unique_ptr<MPI_Comm>> abandoned_;  // kept for an MPI that may still write
  std::map<int, ProcessWatch> watches_;               // by world rank; this node's peers
};

}  // namespace

bool StartedByLauncher() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized) return true;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

namespace {

// MPICH's mpiexec -disable-auto-cleanup sends SIGUSR1 to the ranks that are left when one is lost.
// They notice by themselves, and say who it was.
void IgnoreSignalOfLostRanks() {
  struct sigaction now = {};
  if (std::getenv("PMI_RANK") == nullptr || sigaction(SIGUSR1, nullptr, &now) != 0) return;
  if (now.sa_handler == SIG_DFL) std::signal(SIGUSR1, SIG_IGN);
}

// MPI that npumesh has started ends with the process, so that another world may start in it, and
// the program may go on to use MPI. It stays where a world had no farewell, because MPI would wait
// for ranks that are lost; and in forked processes, whose MPI is their parent's.
void FinalizeAtExit() {
  static pid_t process = 0;
  process = getpid();
  std::atexit([] {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized && process == getpid() && WorldsWithoutFarewell() == 0) MPI_Finalize();
  });
}

Status InitMpi() {
  IgnoreSignalOfLostRanks();
  constexpr size_t kAlone = 2;  // this one and the watch of the start
  int provided = 0;
  const int code = StartNotingThreads(
      kAlone, [&] { return PMPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided); });
  NPUMESH_RETURN_IF_ERROR(MpiStatus(code, "MPI_Init"));
  FinalizeAtExit();
  return Status();
}

}  // namespace

Result<std::unique_ptr<Transport>> MakeMpiTransport(std::chrono::seconds connect_timeout,
                                                    std::chrono::seconds soft_timeout) {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized) {
    return Error(Code::kInvalidArgument,
                 "the program has finished MPI (MPI_Finalize) in this process already; start the "
                 "world before it does");
  }
  if (!initialized) {
    NPUMESH_RETURN_IF_ERROR(InitMpi());
  }
  auto calls = std::make_shared<MpiCalls>();
  NPUMESH_RETURN_IF_ERROR(MpiStatus(MPI_Comm_dup(MPI_COMM_WORLD, &calls->comm), "MPI_Comm_dup"));
  MPI_Comm_set_errhandler(calls->comm, MPI_ERRORS_RETURN);
  auto transport = std::make_unique<MpiTransport>(calls, connect_timeout, soft_timeout);
  NPUMESH_RETURN_IF_ERROR(transport->Meet());
  return std::unique_ptr<Transport>(std::move(transport));
}

std::string MpiLibraryVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string_view all(text, static_cast<size_t>(length));
  return std::string(all.substr(0, all.find(',')));
}

}  // namespace npumesh
