#include "launch/commands/fail_together.h"

#include "launch/commands/command.h"
#include "launch/ranks/agreement.h"

namespace npumesh {
namespace {

// True when all ranks took part.
bool TellOnce(World& world, std::string_view command, const Outcome& mine) {
  const Result<std::unique_ptr<RankCircle>> circle = RankCircle::Create(world);
  if (!circle.ok()) {
    PrintFailure(command, mine.message);
    return false;
  }
  Agreement agreement(**circle, [&](std::string_view line) { PrintFailure(command, line); });
  return !agreement.Reached(mine) && !agreement.broken();
}

}  // namespace

int FailTogether(std::string_view command, const Outcome& mine) {
  // The defaults, because the environment itself may be what is wrong.
  const Result<std::unique_ptr<World>> world = World::Start(Env());
  if (!world.ok()) {
    PrintFailure(command, mine.message);
    return mine.exit_code;
  }
  if (TellOnce(**world, command, mine)) {
    if (const Status end = (*world)->Shutdown(); !end.ok()) return ExitCode(end);
  }
  return mine.exit_code;
}

}  // namespace npumesh
