// Texts of tiles that were edited, and their refusals.
#pragma once

#include "tests/catch.h"
#include "tiny_compile/tile/tiles.h"

namespace tiny_compile {

// The first place of `old`, which is there, by another text.
inline std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), by);
}

// So edited, the tiles are refused, with the line and this reason.
inline void check_refused(const std::string& text, const std::string& old,
                          const std::string& by, const std::string& why) {
  INFO(by);
  CHECK_THROWS_WITH(
      parse_tiles(replaced(text, old, by)),
      Catch::Matchers::ContainsSubstring("line ") && Catch::Matchers::ContainsSubstring(why));
}

}  // namespace tiny_compile
