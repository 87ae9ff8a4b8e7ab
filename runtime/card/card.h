// Card: the chip that this process checks its work against, as NPUMESH_CARD says, and what a check
// does with what it finds (docs/card.md).
//
// Thread-safety: values.
#ifndef NPUMESH_RUNTIME_CARD_CARD_H_
#define NPUMESH_RUNTIME_CARD_CARD_H_

#include <span>

#include "runtime/base/env/env_table.h"
#include "runtime/base/status.h"
#include "runtime/card/chips.h"

namespace npumesh {

// The variable that names the file of findings.
inline constexpr const char* kCardReport = "NPUMESH_CARD_REPORT";

std::span<const EnvVariable> CardEnvTable();

struct Card {
  // NPUMESH_CARD; null: nothing is checked.
  const Chip* chip = nullptr;
  // NPUMESH_CARD_CHECK=fail: what the card refuses is an error.
  bool fails = false;

  explicit operator bool() const { return chip != nullptr; }

  // Errors (kInvalidArgument) name variable, text and what is accepted.
  static Result<Card> FromProcess();
  // Reads through `get`. For tests.
  static Result<Card> From(const EnvGetter& get);
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_CARD_CARD_H_
