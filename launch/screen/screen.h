// Screen: where a command prints, and how wide and colourful its text may be there.
//
// Thread-safety: values; free functions without state.
#ifndef NPUMESH_LAUNCH_SCREEN_SCREEN_H_
#define NPUMESH_LAUNCH_SCREEN_SCREEN_H_

#include <string>
#include <string_view>

#include "runtime/base/env/env_table.h"

namespace npumesh {

// What limits a text for people. The default is a pipe or a file: lines stay whole, nothing is
// coloured, and a progress line has no place.
struct Screen {
  int columns = 0;  // 0: lines stay whole
  bool colours = false;
  bool terminal = false;  // where a progress line can be written over
};

inline constexpr int kFewestColumns = 40;
inline constexpr int kMostColumns = 1000;

// What a descriptor leads to.
struct Descriptor {
  bool terminal = false;
  int columns = 0;  // what the terminal says; 0: it does not
};
Descriptor LookAtDescriptor(int fd);

// Whether mpirun has started this process: Open MPI's sets PMIX_RANK, MPICH's PMI_RANK.
bool IsRank(const EnvGetter& get);

// COLUMNS counts before the width that a terminal says; one that is not a number from
// kFewestColumns to kMostColumns is ignored, as other programs do. NO_COLOR (not empty) and
// TERM=dumb switch colours off. mpirun gives its ranks other pseudo-terminals, so a rank has
// no terminal: `npumesh launch` passes its text on to the screen.
Screen ScreenOf(const Descriptor& descriptor, const EnvGetter& get);

// The screen of a descriptor of this process.
Screen ScreenOf(int fd);

// `text` as this screen shows it: folded, then coloured.
std::string Shown(std::string_view text, const Screen& screen);

// The rows of the manual for what ScreenOf reads.
std::vector<EnvVariable> ScreenVariables();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_SCREEN_SCREEN_H_
