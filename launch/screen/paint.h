// Colours of verdicts, for a terminal.
//
// Thread-safety: a free function without state.
#ifndef NPUMESH_LAUNCH_SCREEN_PAINT_H_
#define NPUMESH_LAUNCH_SCREEN_PAINT_H_

#include <string>
#include <string_view>

namespace npumesh {

// `text` with the words of verdicts coloured by the escapes of ANSI (ECMA-48): green what is good
// ("OK", "valid", "ok"), red what is wrong ("DIFFERS", "error:", "wrong"), yellow what deserves a
// look ("warning:", "advice", "<- slowest"), bold what a reader looks for first ("verdict:"). Whole
// words only, and words such as "ok" and "wrong", which any text may hold, only where they begin a
// line. Without the escapes it is the same text.
std::string Painted(std::string_view text);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_SCREEN_PAINT_H_
