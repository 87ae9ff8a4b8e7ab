#include "launch/screen/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "launch/screen/fold.h"
#include "launch/screen/paint.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

std::string_view Value(const EnvGetter& get, const char* name) {
  const char* const text = get(name);
  return text == nullptr ? std::string_view() : text;
}

// 0: it says nothing that can be used.
int ColumnsOf(std::string_view text) {
  const Result<int64_t> columns = ParseInt(text, kFewestColumns, kMostColumns, "COLUMNS");
  return columns.ok() ? static_cast<int>(*columns) : 0;
}

}  // namespace

Descriptor LookAtDescriptor(int fd) {
  Descriptor descriptor;
  descriptor.terminal = isatty(fd) == 1;
  struct winsize size = {};
  if (descriptor.terminal && ioctl(fd, TIOCGWINSZ, &size) == 0) descriptor.columns = size.ws_col;
  return descriptor;
}

bool IsRank(const EnvGetter& get) {
  return get("PMIX_RANK") != nullptr || get("PMI_RANK") != nullptr;
}

Screen ScreenOf(const Descriptor& descriptor, const EnvGetter& get) {
  Screen screen;
  screen.terminal = descriptor.terminal && !IsRank(get);
  screen.columns = ColumnsOf(Value(get, "COLUMNS"));
  if (screen.columns == 0 && screen.terminal && descriptor.columns >= kFewestColumns) {
    screen.columns = descriptor.columns;
  }
  screen.colours =
      screen.terminal && Value(get, "NO_COLOR").empty() && Value(get, "TERM") != "dumb";
  return screen;
}

Screen ScreenOf(int fd) {
  return ScreenOf(LookAtDescriptor(fd),
                  [](const char* name) -> const char* { return std::getenv(name); });
}

std::string Shown(std::string_view text, const Screen& screen) {
  std::string shown = Folded(text, screen.columns);
  return screen.colours ? Painted(shown) : shown;
}

std::vector<EnvVariable> ScreenVariables() {
  return {
      {"COLUMNS", "integer in [40, 1000]; anything else is ignored",
       "the width of the terminal; in pipes lines stay whole",
       "Where tables and messages are folded."},
      {"NO_COLOR", "any text", "colours on a terminal",
       "Switches colours off when it is not empty."},
      {"NPUMESH_LANG", "zh or en", "LC_ALL, LC_MESSAGES or LANG, the first that is set",
       "In which language messages on the screen and in the log are: Chinese (UTF-8), as far as "
       "they are "
       "translated, or English. JSON, files and exceptions are English."},
      {"NPUMESH_VERDICT_LINE", "1", "nothing is said",
       "Set by `npumesh launch`: its ranks tell it that a comparison differs."},
      {"NPUMESH_PROGRESS", "1", "no progress lines in pipes",
       "Set by `npumesh launch` on a terminal: its ranks hand it their progress lines."},
  };
}

}  // namespace npumesh
