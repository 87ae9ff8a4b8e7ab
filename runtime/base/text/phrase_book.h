// Messages in the language of the person who reads them: English, or Chinese where the environment
// says so.
//
// The code has English alone. A table (chinese.cc) has phrases as they stand in the code, with {}
// where values go, and the same in Chinese; a message is taken apart into phrases, and what is in
// no row stays English. Names, numbers and commands stay as they are. JSON, exceptions and files
// are always English.
//
// Thread-safety: free functions; the table is constant.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_PHRASE_BOOK_H_
#define NPUMESH_RUNTIME_BASE_TEXT_PHRASE_BOOK_H_

#include <span>
#include <string>
#include <string_view>

#include "runtime/base/env/env_table.h"

namespace npumesh {

struct Phrase {
  std::string_view english;  // "rank {} did not come within {} s"
  std::string_view chinese;  // the values by number: "rank {0} 在 {1} 秒内没有到来"
};

// More special phrases stand before those that match more.
std::span<const Phrase> ChinesePhrases();

// `text`, one line, with its phrases in Chinese.
std::string InChinese(std::string_view text);

// NPUMESH_LANG=zh, or without it LC_ALL, LC_MESSAGES or LANG, the first that is set: Chinese in
// UTF-8.
bool SpeaksChinese(const EnvGetter& get);

// Each line of `text` as this process speaks; the environment is read once.
std::string InUsersLanguage(std::string_view text);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_PHRASE_BOOK_H_
