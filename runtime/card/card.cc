#include "runtime/card/card.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace npumesh {
namespace {

Status ParseCard(const EnvVariable& variable, std::string_view text, Card& card) {
  if (text.empty()) return Status();
  const Result<const Chip*> chip = Chips().Find(text);
  if (!chip.ok()) {
    return Error(Code::kInvalidArgument, "{}: {}", variable.name, chip.status().message());
  }
  card.chip = *chip;
  return Status();
}

Status ParseCheck(const EnvVariable& variable, std::string_view text, Card& card) {
  if (text != "warn" && text != "fail") {
    return Error(Code::kInvalidArgument, "{}: expected {}, got \"{}\"", variable.name,
                 variable.accepted, text);
  }
  card.fails = text == "fail";
  return Status();
}

// The file is there from the start, so that one without findings is not one that is missing.
Status ParseReport(const EnvVariable& variable, std::string_view text, Card& card) {
  if (text.empty() || !card) return Status();
  const int file = open(std::string(text).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" cannot be written", variable.name, text);
  }
  close(file);
  return Status();
}

constexpr std::array kEntries = {
    EnvEntry<Card>{{"NPUMESH_CARD", "a chip of `npumesh card ls`, for example ascend910b3",
                    "nothing is checked",
                    "Checks whether this card would take what is run: limits of operators, its "
                    "streams, events and notifies, cores of collectives (card.md)."},
                   ParseCard},
    EnvEntry<Card>{{"NPUMESH_CARD_CHECK", "warn or fail", "warn",
                    "What the card would refuse is a warning, or an error with its code."},
                   ParseCheck},
    EnvEntry<Card>{{kCardReport, "a file", "findings are lines of the log",
                    "What is found is added to it, a JSON object on each line; `npumesh card "
                    "report` makes one report and JUnit of it (card.md)."},
                   ParseReport},
};

constexpr auto kManual = ManualOf(kEntries);

}  // namespace

std::span<const EnvVariable> CardEnvTable() {
  return kManual;
}

Result<Card> Card::From(const EnvGetter& get) {
  Card card;
  NPUMESH_RETURN_IF_ERROR(ReadVariables(kEntries, get, card));
  return card;
}

Result<Card> Card::FromProcess() {
  return From([](const char* name) { return std::getenv(name); });
}

}  // namespace npumesh
