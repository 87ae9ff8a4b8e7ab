#include "runtime/base/process/host_name.h"

#include <unistd.h>

#include "runtime/base/files/secure_file.h"

namespace npumesh {

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

std::string BootId() {
  const Result<std::string> id = ReadFile("/proc/sys/kernel/random/boot_id", 4096);
  return id.ok() ? id->substr(0, id->find('\n')) : "";
}

}  // namespace npumesh
