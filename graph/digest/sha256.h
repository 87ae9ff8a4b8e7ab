// SHA-256: what a file's content is called, and how it is known to be unchanged (libcrypto). All
// texts are lower-case hexadecimal.
#ifndef NPUMESH_GRAPH_DIGEST_SHA256_H_
#define NPUMESH_GRAPH_DIGEST_SHA256_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

std::string Sha256(std::string_view bytes);
// Errors: kNotFound, kIo.
Result<std::string> Sha256OfFile(const std::string& path);

// Of bytes that come in pieces. Thread-safety: none.
class Sha256Sum {
 public:
  Sha256Sum();
  ~Sha256Sum();
  Sha256Sum(const Sha256Sum&) = delete;
  Sha256Sum& operator=(const Sha256Sum&) = delete;

  void Add(std::span<const std::byte> piece);
  // Of all pieces. REQUIRES: called once, last.
  std::string Text();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DIGEST_SHA256_H_
