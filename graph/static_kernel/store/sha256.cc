#include <openssl/evp.h>

#include <array>
#include <cassert>

#include "graph/static_kernel/store/kernel_store.h"
#include "runtime/base/secure_file.h"

namespace npumesh {

std::string Sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  [[maybe_unused]] const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  assert(done == 1 && size == 32);
  std::string text;
  for (unsigned int k = 0; k < size; ++k) text += fmt::format("{:02x}", digest[k]);
  return text;
}

Result<std::string> Sha256OfFile(const std::string& path) {
  const auto bytes = ReadFile(path);
  if (bytes.ok()) return Sha256(*bytes);
  const Code code = bytes.status().code() == Code::kNotFound ? Code::kNotFound : Code::kIo;
  return Error(code, "{}", bytes.status().message());
}

}  // namespace npumesh
