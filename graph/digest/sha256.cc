#include "graph/digest/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cassert>

#include "runtime/base/files/secure_file.h"

namespace npumesh {

struct Sha256Sum::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

Sha256Sum::Sha256Sum() : state_(std::make_unique<State>()) {
  [[maybe_unused]] const int done = EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr);
  assert(done == 1);
}

Sha256Sum::~Sha256Sum() = default;

void Sha256Sum::Add(std::span<const std::byte> piece) {
  [[maybe_unused]] const int done =
      EVP_DigestUpdate(state_->context.get(), piece.data(), piece.size());
  assert(done == 1);
}

std::string Sha256Sum::Text() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  [[maybe_unused]] const int done = EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size);
  assert(done == 1 && size == 32);
  std::string text;
  for (unsigned int k = 0; k < size; ++k) text += fmt::format("{:02x}", digest[k]);
  return text;
}

std::string Sha256(std::string_view bytes) {
  Sha256Sum sum;
  sum.Add(std::as_bytes(std::span(bytes)));
  return sum.Text();
}

Result<std::string> Sha256OfFile(const std::string& path) {
  const auto bytes = ReadFile(path);
  if (bytes.ok()) return Sha256(*bytes);
  const Code code = bytes.status().code() == Code::kNotFound ? Code::kNotFound : Code::kIo;
  return Error(code, "{}", bytes.status().message());
}

}  // namespace npumesh
