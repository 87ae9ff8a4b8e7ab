// PlainUser: while it lives the process may not write everywhere, even if root started it.
#ifndef NPUMESH_TESTS_UNIT_BASE_PLAIN_USER_H_
#define NPUMESH_TESTS_UNIT_BASE_PLAIN_USER_H_

#include <unistd.h>

namespace npumesh {

class PlainUser {
 public:
  PlainUser() : was_root_(geteuid() == 0 && setresuid(kNobody, kNobody, 0) == 0) {}
  ~PlainUser() {
    if (was_root_ && setresuid(0, 0, 0) != 0) _exit(1);
  }
  PlainUser(const PlainUser&) = delete;
  PlainUser& operator=(const PlainUser&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  const bool was_root_;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_BASE_PLAIN_USER_H_
