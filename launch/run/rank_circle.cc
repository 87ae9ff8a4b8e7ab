#include "launch/run/rank_circle.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace npumesh {
namespace {

// An outcome in bytes: exit code, consequence, message.
std::string Pack(const Outcome& outcome) {
  std::string bytes;
  bytes.push_back(static_cast<char>(outcome.exit_code));
  bytes.push_back(outcome.consequence ? 1 : 0);
  return bytes + outcome.message;
}

Outcome Unpack(const std::string& bytes) {
  if (bytes.size() < 2) return {4, "sent no outcome", false};
  return {static_cast<unsigned char>(bytes[0]), bytes.substr(2), bytes[1] != 0};
}

// One line: whatever breaks lines in a message of another library becomes "; ".
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c != '\n') {
      line.push_back(c);
    } else if (!line.empty() && !line.ends_with("; ")) {
      line += "; ";
    }
  }
  while (line.ends_with("; ")) line.resize(line.size() - 2);
  return line;
}

// A number that tells this group apart from the groups of graphs over the same ranks.
constexpr uint32_t kCircleKey = 0x72696e67;

}  // namespace

Outcome Outcome::From(const Status& status) {
  if (status.ok()) return {};
  return {ExitCode(status), OneLine(status.message()), status.code() == Code::kPeerLost};
}

int Culprit(const std::vector<Outcome>& outcomes) {
  int fallback = -1;
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].ok()) continue;
    if (!outcomes[rank].consequence) return static_cast<int>(rank);
    if (fallback < 0) fallback = static_cast<int>(rank);
  }
  return fallback;
}

std::string TellFailure(const std::vector<Outcome>& outcomes) {
  const int culprit = Culprit(outcomes);
  const Outcome& told = outcomes[static_cast<size_t>(culprit)];
  if (outcomes.size() == 1) return told.message;
  const auto others = std::count_if(outcomes.begin(), outcomes.end(), [&](const Outcome& other) {
    return !other.ok() && !other.consequence && other.message != told.message;
  });
  std::string line = fmt::format("rank {} of {}: {}", culprit, outcomes.size(), told.message);
  if (others > 0)
    line += fmt::format(" ({} other rank{} failed too)", others, others > 1 ? "s" : "");
  return line;
}

Result<std::unique_ptr<RankCircle>> RankCircle::Create(World& world) {
  std::unique_ptr<RankCircle> circle(new RankCircle(world));
  if (world.size() == 1) return circle;
  std::vector<int> everyone(static_cast<size_t>(world.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  NPUMESH_ASSIGN_OR_RETURN(circle->group_,
                           world.transport().Group(everyone, kCircleKey, circle->Limit()));
  return circle;
}

Deadline RankCircle::Limit() const {
  const auto limit = world_.env().exec_timeout;
  return limit == kNoTimeout ? Deadline::Never() : Deadline::After(limit);
}

Result<std::vector<std::string>> RankCircle::Share(std::string_view mine) {
  if (!group_) return std::vector<std::string>{std::string(mine)};
  const auto ranks = static_cast<size_t>(size());
  const uint64_t my_bytes = mine.size();
  std::vector<uint64_t> bytes(ranks);
  NPUMESH_RETURN_IF_ERROR(group_->AllGather(&my_bytes, bytes.data(), sizeof(my_bytes), Limit()));
  const uint64_t most = *std::max_element(bytes.begin(), bytes.end());
  std::vector<std::string> texts(ranks);
  if (most == 0) return texts;
  std::string padded(mine);
  padded.resize(most);
  std::string all(most * ranks, '\0');
  NPUMESH_RETURN_IF_ERROR(group_->AllGather(padded.data(), all.data(), most, Limit()));
  for (size_t rank = 0; rank < ranks; ++rank) texts[rank] = all.substr(rank * most, bytes[rank]);
  return texts;
}

Result<std::vector<Outcome>> RankCircle::Share(const Outcome& mine) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts, Share(Pack(mine)));
  std::vector<Outcome> outcomes;
  for (const std::string& text : texts) outcomes.push_back(Unpack(text));
  return outcomes;
}

}  // namespace npumesh
