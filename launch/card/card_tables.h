// What is known of cards, for people and programs.
#ifndef NPUMESH_LAUNCH_CARD_CARD_TABLES_H_
#define NPUMESH_LAUNCH_CARD_CARD_TABLES_H_

#include <string>

#include "launch/report/command_report.h"
#include "runtime/card/chips.h"

namespace npumesh {

// All chips: `chips` with name, family, products and what is counted most.
CommandReport ChipsReport();
std::string ChipsText(const CommandReport& report);

// One of them: `facts` with name, value and source; `rules` that hold for it.
CommandReport ChipReport(const Chip& chip);
std::string ChipText(const CommandReport& report);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CARD_CARD_TABLES_H_
