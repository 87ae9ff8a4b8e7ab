// What TorchAir's security page recommends for the process itself: a strict umask, no root, a
// randomised address space (docs/security.md).
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_PROCESS_SAFETY_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_PROCESS_SAFETY_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace npumesh {

// The loosest umask that lets only the group in: files 640, folders 750.
inline constexpr mode_t kStrictUmask = 0027;
// Full randomisation, kernel.randomize_va_space.
inline constexpr int kFullAslr = 2;

struct ProcessFacts {
  std::optional<mode_t> umask;  // none: the system does not say
  bool root = false;
  std::optional<int> aslr;  // none: the system does not say
};

ProcessFacts LookAtProcess();

// One text for each of: a umask that lets more than kStrictUmask, running as root. Says what to do.
std::vector<std::string> WarningsAbout(const ProcessFacts& facts);

// Warns about this process, each text once.
void WarnAboutProcess();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_PROCESS_SAFETY_H_
