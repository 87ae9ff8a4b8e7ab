#include "launch/ranks/rank_circle.h"

#include <algorithm>

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

// A number that tells this group apart from the groups of graphs over the same ranks.
constexpr uint32_t kCircleKey = 0x72696e67;

}  // namespace

Outcome Outcome::From(const Status& status) {
  if (status.ok()) return {};
  return {ExitCode(status), std::string(status.message()), status.code() == Code::kPeerLost};
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
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Gathering> gathering,
                           Gathering::Create(world, kCircleKey));
  return std::unique_ptr<RankCircle>(new RankCircle(std::move(gathering)));
}

Result<std::vector<Outcome>> RankCircle::Share(const Outcome& mine) {
  const Result<std::vector<std::string>> texts = Share(Pack(mine));
  if (!texts.ok()) return texts.status().WithContext("agreeing with all ranks to go on");
  std::vector<Outcome> outcomes;
  for (const std::string& text : *texts) outcomes.push_back(Unpack(text));
  return outcomes;
}

}  // namespace npumesh
