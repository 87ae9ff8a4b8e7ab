// Chips: what is documented of each chip, from one text that a person can read (chips.card).
//
// Thread-safety: a table does not change.
#ifndef NPUMESH_RUNTIME_CARD_CHIPS_H_
#define NPUMESH_RUNTIME_CARD_CHIPS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// The fact of a family that names the chip it stands for.
inline constexpr std::string_view kStandsFor = "stands_for";

struct ChipFact {
  std::string_view name;   // "streams"
  std::string_view value;  // "1984"
  std::string_view source;
};

struct Chip {
  std::string_view name;    // "ascend910b3"
  std::string_view family;  // "ascend910b"
  std::vector<ChipFact> facts;

  // Null: nothing is documented.
  const ChipFact* Find(std::string_view fact) const;
  // A number, with the units of ParseBytes.
  std::optional<int64_t> Number(std::string_view fact) const;
  // The name is that of the chip or of its family.
  bool Is(std::string_view name) const { return name == this->name || name == family; }
};

class ChipTable {
 public:
  // The names are views into `text`. Errors (kCorrupt) name the line.
  static Result<ChipTable> Parse(std::string_view text);

  const std::vector<Chip>& chips() const { return chips_; }
  // The name of a chip or of a family, which stands for one of its chips, in any case. kNotFound
  // with names that look alike.
  Result<const Chip*> Find(std::string_view name) const;
  // Whether it is the name of a chip or of a family.
  bool Knows(std::string_view name) const;

 private:
  std::vector<Chip> chips_;
};

// The text of chips.card, and the table of it.
std::string_view CardChipsText();
const ChipTable& Chips();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_CARD_CHIPS_H_
