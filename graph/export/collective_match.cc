#include "graph/export/collective_match.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

namespace npumesh {
namespace {

bool IsMessage(const CollectiveCall& call) {
  return call.encounter == Encounter::kSend || call.encounter == Encounter::kReceive;
}

std::string TypesText(const std::vector<TensorType>& types) {
  std::vector<std::string> texts;
  for (const TensorType& type : types) texts.push_back(type.ToString());
  return fmt::format("{}", fmt::join(texts, ", "));
}

// "node "X" (HcomAllReduce)".
std::string Who(const CollectiveCall& call) {
  return fmt::format("node \"{}\" ({})", call.node, call.type);
}

// Ranks may have tensors of different sizes: tokens and the rows of experts, too.
bool MayBeUneven(std::string_view type) {
  return type.ends_with("V") || type.ends_with("VC") || type.starts_with("MoeDistribute") ||
         type.find("AlltoAllv") != std::string_view::npos;
}

class Matcher {
 public:
  Matcher(const std::vector<CollectiveTrace>& traces, size_t most)
      : traces_(traces), most_(most), at_(traces.size(), 0) {}

  std::vector<CollectiveMismatch> Run() {
    CheckGroups();
    for (bool moved = true; moved && found_.size() < most_;) {
      moved = false;
      for (size_t rank = 0; rank < traces_.size(); ++rank) moved = Advance(rank) || moved;
    }
    if (found_.size() < most_) ReportWaiting();
    if (found_.empty()) ReportUnreceived();
    return std::move(found_);
  }

 private:
  using Channel = std::tuple<std::string, int, int>;  // group, from, to: world ranks

  void Add(size_t rank, std::string text) {
    if (found_.size() < most_) found_.push_back({static_cast<int>(rank), std::move(text)});
  }

  const CollectiveCall* Next(size_t rank) const {
    const auto& calls = traces_[rank].calls;
    return at_[rank] < calls.size() ? &calls[at_[rank]] : nullptr;
  }

  const std::vector<int>& Members(size_t rank, const CollectiveCall& call) const {
    return *traces_[rank].MembersOf(call.group);
  }

  // One group has the same members everywhere, and only members use it.
  void CheckGroups() {
    std::map<std::string, size_t> first;
    for (size_t rank = 0; rank < traces_.size(); ++rank) {
      for (const auto& [group, members] : traces_[rank].groups) {
        const size_t other = first.emplace(group, rank).first->second;
        const std::vector<int>& theirs = *traces_[other].MembersOf(group);
        if (members != theirs) {
          Add(rank, fmt::format("group \"{}\" has the ranks {} here and {} on rank {}", group,
                                fmt::join(members, ","), fmt::join(theirs, ","), other));
        }
        if (std::count(members.begin(), members.end(), static_cast<int>(rank)) == 0) {
          Add(rank, fmt::format("group \"{}\" is used by rank {}, which is not one of its ranks {}",
                                group, rank, fmt::join(members, ",")));
          foreign_ = true;
        }
      }
    }
  }

  // Lets `rank` go as far as it can alone, or through one meeting.
  bool Advance(size_t rank) {
    const CollectiveCall* call = Next(rank);
    if (call == nullptr) return false;
    if (call->encounter == Encounter::kSend) return Send(rank, *call);
    if (call->encounter == Encounter::kReceive) return Receive(rank, *call);
    const std::vector<int>& members = Members(rank, *call);
    if (std::count(members.begin(), members.end(), static_cast<int>(rank)) == 0) {
      ++at_[rank];  // reported by CheckGroups
      return true;
    }
    for (const int member : members) {
      const CollectiveCall* theirs = Next(static_cast<size_t>(member));
      if (theirs == nullptr || IsMessage(*theirs) || theirs->group != call->group) return false;
    }
    Meet(members);
    return true;
  }

  // World rank of a peer; -1 when the group has no such rank.
  int PeerOf(size_t rank, const CollectiveCall& call) const {
    const std::vector<int>& members = Members(rank, call);
    const bool known = call.peer >= 0 && call.peer < static_cast<int64_t>(members.size());
    return known ? members[static_cast<size_t>(call.peer)] : -1;
  }

  bool Send(size_t rank, const CollectiveCall& call) {
    ++at_[rank];
    const int to = PeerOf(rank, call);
    if (to < 0) {
      Add(rank, fmt::format("{}: dest_rank {} is no rank of group \"{}\"", Who(call), call.peer,
                            call.group));
    } else {
      sent_[{call.group, static_cast<int>(rank), to}].push_back({rank, &call});
    }
    return true;
  }

  bool Receive(size_t rank, const CollectiveCall& call) {
    const int from = PeerOf(rank, call);
    if (from < 0) {
      Add(rank, fmt::format("{}: src_rank {} is no rank of group \"{}\"", Who(call), call.peer,
                            call.group));
      ++at_[rank];
      return true;
    }
    auto& queue = sent_[{call.group, from, static_cast<int>(rank)}];
    if (queue.empty()) return false;
    Compare(static_cast<size_t>(from), *queue.front().call, rank, call);
    queue.pop_front();
    ++at_[rank];
    return true;
  }

  void Meet(const std::vector<int>& members) {
    const auto first = static_cast<size_t>(members[0]);
    const CollectiveCall& expected = *Next(first);
    for (const int member : members) {
      const auto rank = static_cast<size_t>(member);
      if (rank != first) Compare(first, expected, rank, *Next(rank));
    }
    CompareCounts(members, expected);
    for (const int member : members) ++at_[static_cast<size_t>(member)];
  }

  void Differ(size_t rank, const CollectiveCall& seen, size_t first, const CollectiveCall& expected,
              std::string_view what, const std::string& mine, const std::string& theirs) {
    Add(rank, fmt::format("{}: {} is {}, but {} of rank {}, with which it meets in group \"{}\", "
                          "has {}",
                          Who(seen), what, mine, Who(expected), first, seen.group, theirs));
  }

  void Compare(size_t first, const CollectiveCall& expected, size_t rank,
               const CollectiveCall& seen) {
    const bool messages = IsMessage(expected);
    if (!messages && seen.type != expected.type) {
      return Differ(rank, seen, first, expected, "the operator", seen.type, expected.type);
    }
    if (seen.reduction != expected.reduction) {
      return Differ(rank, seen, first, expected, "reduction", seen.reduction, expected.reduction);
    }
    if (!messages && seen.root != expected.root) {
      return Differ(rank, seen, first, expected, "root_rank", fmt::format("{}", seen.root),
                    fmt::format("{}", expected.root));
    }
    if (seen.operands.empty() || expected.operands.empty()) return;
    const bool same = MayBeUneven(seen.type) ? seen.operands[0].dtype == expected.operands[0].dtype
                                             : seen.operands == expected.operands;
    if (!same) {
      Differ(rank, seen, first, expected, "the tensor", TypesText(seen.operands),
             TypesText(expected.operands));
    }
  }

  const std::vector<int64_t>* Counts(int rank, const char* port) const {
    const auto& counts = Next(static_cast<size_t>(rank))->counts;
    const auto found = counts.find(port);
    return found == counts.end() ? nullptr : &found->second;
  }

  // What a rank sends to another is what that one receives from it.
  void CompareCounts(const std::vector<int>& members, const CollectiveCall& call) {
    if (call.encounter == Encounter::kPairs) return ComparePairs(members);
    for (const auto& [all, own] : {std::pair("recv_counts", "send_count"),
                                   {"send_counts", "recv_count"},
                                   {"send_count_matrix", ""}}) {
      const std::vector<int64_t>* expected = Counts(members[0], all);
      for (size_t i = 0; expected != nullptr && i < members.size(); ++i) {
        const auto rank = static_cast<size_t>(members[i]);
        const std::vector<int64_t>* mine = Counts(members[i], all);
        if (mine != nullptr && *mine != *expected) {
          Differ(rank, *Next(rank), static_cast<size_t>(members[0]), call, all,
                 fmt::format("[{}]", fmt::join(*mine, ",")),
                 fmt::format("[{}]", fmt::join(*expected, ",")));
        }
        const std::vector<int64_t>* part = Counts(members[i], own);
        if (part != nullptr && part->size() == 1 && i < expected->size() &&
            (*part)[0] != (*expected)[i]) {
          Add(rank, fmt::format("{}: {} is {}, but {}[{}] is {}", Who(*Next(rank)), own, (*part)[0],
                                all, i, (*expected)[i]));
        }
      }
    }
  }

  void ComparePairs(const std::vector<int>& members) {
    for (size_t from = 0; from < members.size(); ++from) {
      for (size_t to = 0; to < members.size(); ++to) {
        const std::vector<int64_t>* sends = Counts(members[from], "send_counts");
        const std::vector<int64_t>* receives = Counts(members[to], "recv_counts");
        if (sends == nullptr || receives == nullptr) continue;
        if (to >= sends->size() || from >= receives->size()) continue;
        if ((*sends)[to] == (*receives)[from]) continue;
        const auto rank = static_cast<size_t>(members[to]);
        Add(rank, fmt::format("{}: recv_counts[{}] is {}, but rank {} sends {} elements "
                              "(send_counts[{}] of {})",
                              Who(*Next(rank)), from, (*receives)[from], members[from],
                              (*sends)[to], to, Who(*Next(static_cast<size_t>(members[from])))));
      }
    }
  }

  // Where a rank stands, for the others that wait for it.
  std::string Place(size_t rank) const {
    const CollectiveCall* call = Next(rank);
    if (call == nullptr) {
      const size_t calls = traces_[rank].calls.size();
      return fmt::format("rank {} has no more collectives after {}", rank, calls);
    }
    return fmt::format("rank {} is at call {}, {} of group \"{}\"", rank, at_[rank], Who(*call),
                       call->group);
  }

  // Whom a rank that cannot go on waits for.
  std::vector<size_t> Missing(size_t rank, const CollectiveCall& call) const {
    if (IsMessage(call)) return {static_cast<size_t>(PeerOf(rank, call))};
    std::vector<size_t> missing;
    for (const int member : Members(rank, call)) {
      const CollectiveCall* theirs = Next(static_cast<size_t>(member));
      if (theirs == nullptr || IsMessage(*theirs) || theirs->group != call.group) {
        missing.push_back(static_cast<size_t>(member));
      }
    }
    return missing;
  }

  void ReportWaiting() {
    for (size_t rank = 0; rank < traces_.size() && !foreign_; ++rank) {
      const CollectiveCall* call = Next(rank);
      if (call == nullptr) continue;
      const std::vector<size_t> missing = Missing(rank, *call);
      if (missing.empty()) continue;
      Add(rank,
          fmt::format("{}, call {} of rank {}, would wait without end for rank {} in group "
                      "\"{}\": {}",
                      Who(*call), at_[rank], rank, missing[0], call->group, Place(missing[0])));
    }
  }

  void ReportUnreceived() {
    for (const auto& [channel, queue] : sent_) {
      if (queue.empty()) continue;
      Add(queue.front().rank, fmt::format("{} sends to rank {}, which has no HcomReceive for it",
                                          Who(*queue.front().call), std::get<2>(channel)));
    }
  }

  struct Sent {
    size_t rank;
    const CollectiveCall* call;
  };
  const std::vector<CollectiveTrace>& traces_;
  const size_t most_;
  std::vector<size_t> at_;  // next call of each rank
  std::map<Channel, std::deque<Sent>> sent_;
  bool foreign_ = false;  // a rank uses a group it is not in: what follows is its consequence
  std::vector<CollectiveMismatch> found_;
};

}  // namespace

std::vector<CollectiveMismatch> MatchCollectives(const std::vector<CollectiveTrace>& traces,
                                                 size_t most) {
  return Matcher(traces, most).Run();
}

}  // namespace npumesh
